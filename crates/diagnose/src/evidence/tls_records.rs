//! What TLS records are seen by.

/// What a record adds in TLS 1.3: header, content type and tag (RFC 8446, 5.2). Up to 1.2 it may be a third more, on both
/// sides alike.
pub(crate) const RECORD_OVERHEAD_BYTES: f64 = 22.0;
