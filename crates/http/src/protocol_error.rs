//! What an answer breaks.

/// A response breaks the rules of HTTP, or the limits of what is read; the text says which.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ProtocolError(pub(crate) String);
