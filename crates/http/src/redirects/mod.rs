//! Where redirects lead, and how a request changes on the way.

pub(crate) mod following;
pub(crate) mod leg;
pub(crate) mod manner;
