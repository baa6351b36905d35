//! HTTP/1.1 and HTTP/2 over TCP, Unix sockets and TLS: a kind of work.
//!
//! The way of an op: `reach` has found where to, `link` connects and shakes hands; then `http1` sends the request and reads the
//! response, or `streams` does as `h2` has them; both keep their books at a `desk`. `redirects` goes on where a redirect leads.
//! What is sent is made in `requests`: where ops differ in it, `repertoire` has all of them and `picker` chooses.

mod broken;
mod contact;
mod desk;
mod factory;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod h2;
mod http1;
mod inflate;
mod kind;
mod link;
mod op;
mod protocol_error;
mod reach;
mod redirects;
mod requests;
mod shared;
mod streams;

pub use factory::{HttpFactory, RequestsSeen, check_requests};
pub use http1::lane::Http;
pub use kind::Web;
pub use link::handshake::chooses_http2;
pub use link::tls::{LIBRARY as TLS_LIBRARY, check as check_tls};
pub use redirects::following::{Following, FollowingFactory};
pub use streams::Http2;
