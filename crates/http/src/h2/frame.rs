//! Frames as they lie on the wire (RFC 9113, 4.1 and 6).

/// Octets of a frame's header.
pub(super) const HEADER_BYTES: usize = 9;
/// Longest payload that we take, the least that may be announced: what does not fit comes in several frames.
pub(super) const PAYLOAD_LIMIT: usize = 16_384;
/// Largest window, and largest stream identifier.
pub(super) const LARGEST: u32 = (1 << 31) - 1;

/// What a connection begins with (RFC 9113, 3.4).
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Types of frames.
pub(super) mod kind {
    pub(in super::super) const DATA: u8 = 0;
    pub(in super::super) const HEADERS: u8 = 1;
    pub(in super::super) const PRIORITY: u8 = 2;
    pub(in super::super) const RST_STREAM: u8 = 3;
    pub(in super::super) const SETTINGS: u8 = 4;
    pub(in super::super) const PUSH_PROMISE: u8 = 5;
    pub(in super::super) const PING: u8 = 6;
    pub(in super::super) const GOAWAY: u8 = 7;
    pub(in super::super) const WINDOW_UPDATE: u8 = 8;
    pub(in super::super) const CONTINUATION: u8 = 9;
}

/// Flags of frames.
pub(super) mod flag {
    pub(in super::super) const ACK: u8 = 1;
    pub(in super::super) const END_STREAM: u8 = 1;
    pub(in super::super) const END_HEADERS: u8 = 4;
    pub(in super::super) const PADDED: u8 = 8;
    pub(in super::super) const PRIORITY: u8 = 0x20;
}

/// Identifiers of settings.
pub(super) mod setting {
    pub(in super::super) const HEADER_TABLE_SIZE: u16 = 1;
    pub(in super::super) const ENABLE_PUSH: u16 = 2;
    pub(in super::super) const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub(in super::super) const INITIAL_WINDOW_SIZE: u16 = 4;
    pub(in super::super) const MAX_FRAME_SIZE: u16 = 5;
    pub(in super::super) const MAX_HEADER_LIST_SIZE: u16 = 6;
}

/// Codes of errors.
pub(super) mod code {
    pub(in super::super) const NO_ERROR: u32 = 0;
    pub(in super::super) const PROTOCOL_ERROR: u32 = 1;
    pub(in super::super) const FLOW_CONTROL_ERROR: u32 = 3;
    pub(in super::super) const FRAME_SIZE_ERROR: u32 = 6;
    pub(in super::super) const REFUSED_STREAM: u32 = 7;
    pub(in super::super) const CANCEL: u32 = 8;
    pub(in super::super) const COMPRESSION_ERROR: u32 = 9;
    pub(in super::super) const ENHANCE_YOUR_CALM: u32 = 11;

    /// The name of a code, for the user.
    pub(in super::super) fn name(code: u32) -> &'static str {
        const NAMES: [&str; 14] = [
            "NO_ERROR",
            "PROTOCOL_ERROR",
            "INTERNAL_ERROR",
            "FLOW_CONTROL_ERROR",
            "SETTINGS_TIMEOUT",
            "STREAM_CLOSED",
            "FRAME_SIZE_ERROR",
            "REFUSED_STREAM",
            "CANCEL",
            "COMPRESSION_ERROR",
            "CONNECT_ERROR",
            "ENHANCE_YOUR_CALM",
            "INADEQUATE_SECURITY",
            "HTTP_1_1_REQUIRED",
        ];
        NAMES.get(code as usize).copied().unwrap_or("a code without a name")
    }
}

/// A frame's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) length: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl Header {
    #[inline]
    pub(super) fn read(octets: &[u8; HEADER_BYTES]) -> Self {
        let [a, b, c, kind, flags, s, t, u, v] = *octets;
        Self {
            length: usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c),
            kind,
            flags,
            stream: u32::from_be_bytes([s, t, u, v]) & LARGEST,
        }
    }

    #[inline]
    pub(super) fn push(self, out: &mut Vec<u8>) {
        let [_, a, b, c] = (self.length as u32).to_be_bytes();
        let [s, t, u, v] = self.stream.to_be_bytes();
        out.extend_from_slice(&[a, b, c, self.kind, self.flags, s, t, u, v]);
    }

    #[inline]
    pub(super) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Appends a frame whose payload is one number: RST_STREAM, WINDOW_UPDATE.
pub(super) fn push_number(kind: u8, stream: u32, number: u32, out: &mut Vec<u8>) {
    Header { length: 4, kind, flags: 0, stream }.push(out);
    out.extend_from_slice(&number.to_be_bytes());
}

/// Appends a GOAWAY frame of a client that was sent no stream.
pub(super) fn push_goaway(reason: u32, out: &mut Vec<u8>) {
    Header { length: 8, kind: kind::GOAWAY, flags: 0, stream: 0 }.push(out);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&reason.to_be_bytes());
}

/// Appends a SETTINGS frame.
pub(super) fn push_settings(settings: &[(u16, u32)], out: &mut Vec<u8>) {
    Header { length: 6 * settings.len(), kind: kind::SETTINGS, flags: 0, stream: 0 }.push(out);
    for (identifier, value) in settings {
        out.extend_from_slice(&identifier.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}
