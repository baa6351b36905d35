//! Where connections go to, and where they come from.

pub(crate) mod address;
pub(crate) mod origins;
pub(crate) mod proxy;
pub(crate) mod proxy_protocol;
pub(crate) mod resolve;
pub(crate) mod search;
pub(crate) mod source;
