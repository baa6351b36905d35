//! Paths of our own: what the kernel of a small virtual machine does not offer (there is no `netem` on many).
//!
//! [`packets`] relays IP packets between two namespaces, so that handshakes, windows and initial windows see a true
//! round trip. [`stream`] relays TCP connections, as a proxy does, and [`messages`] what clients say on Unix sockets. The first two use the same arithmetic: a token bucket for rate,
//! a link for delay, loss and queue. It has no clock of its own: whoever asks says what time it is.

mod bucket;
mod link;
pub(crate) mod messages;
pub(crate) mod packets;
pub(crate) mod stream;
mod tun;

pub(crate) use bucket::Bucket;
pub(crate) use link::{Link, LinkPlan};
