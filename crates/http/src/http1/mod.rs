//! Requests and responses as HTTP/1.1 has them.

pub(crate) mod lane;
pub(crate) mod response;
