//! A response as a stream carries it: fields, data, fields (RFC 9113, 8.1).

use super::super::inflate::{Asked, Inflate};
use super::super::protocol_error::ProtocolError;
use super::{HEADER_LIST_LIMIT, INTERIM_LIMIT};
use crate::http1::response::ContentLength;
use duel_model::Nanos;

/// One response after the other in the same place; between them it is idle.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// Status of the final head, once it has been read.
    status: Option<u16>,
    content_length: ContentLength,
    body_bytes: u64,
    first_byte_ns: Option<Nanos>,
    /// Octets of its frames.
    bytes_in: u64,
    interim: u32,
    to_head_request: bool,
    keeps_head: bool,
    /// The final head in the form of HTTP/1.1, if it was to be kept or it is a redirect's.
    head: Vec<u8>,
    /// Where bodies are decompressed for counting.
    inflate: Option<Box<Inflate>>,
}

impl Stream {
    /// A place whose bodies are decompressed, or not.
    pub(crate) fn new(decompress: bool) -> Self {
        Self { inflate: decompress.then(|| Box::new(Inflate::new())), ..Self::default() }
    }

    /// The next response answers a request that asks for these codings.
    pub(crate) fn expect_codings(&mut self, asked: Asked) {
        if let Some(inflate) = &mut self.inflate {
            inflate.expect(asked);
        }
    }

    /// The body under way will not end.
    pub(super) fn give_up_body(&mut self) {
        if let Some(inflate) = &mut self.inflate {
            inflate.give_up();
        }
    }

    /// Gets ready for the next response.
    pub(super) fn begin(&mut self, to_head_request: bool, keep_head: bool) {
        let (mut head, inflate) = (std::mem::take(&mut self.head), self.inflate.take());
        head.clear();
        *self = Self { to_head_request, keeps_head: keep_head, head, inflate, ..Self::default() };
    }

    /// Status of the complete response; 0 where there is none.
    pub(crate) fn status(&self) -> u16 {
        self.status.unwrap_or(0)
    }

    /// The final head in the form of HTTP/1.1, if it was to be kept or it is a redirect's.
    pub(crate) fn head_bytes(&self) -> &[u8] {
        &self.head
    }

    pub(crate) fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// Octets of the response's frames so far.
    pub(crate) fn bytes_in(&self) -> u64 {
        self.bytes_in
    }

    /// When the response began.
    pub(crate) fn first_byte_ns(&self) -> Option<Nanos> {
        self.first_byte_ns
    }

    /// The complete body's size after decompression, where bodies are decompressed.
    pub(crate) fn inflated_bytes(&mut self) -> Result<Option<u64>, ProtocolError> {
        self.inflate.as_mut().map(|inflate| inflate.finish()).transpose()
    }

    /// A frame of it is there.
    #[inline]
    pub(super) fn frame(&mut self, octets: usize, now: Nanos) {
        self.bytes_in += octets as u64;
        self.first_byte_ns.get_or_insert(now);
    }

    /// Body bytes.
    #[inline]
    pub(super) fn data(&mut self, bytes: &[u8]) -> Result<(), ProtocolError> {
        if self.status.is_none() {
            return Err(ProtocolError("the server sent a body before its head".into()));
        }
        self.body_bytes += bytes.len() as u64;
        match &mut self.inflate {
            None => Ok(()),
            Some(inflate) => inflate.take(bytes),
        }
    }

    /// The stream has ended: whether the response is whole.
    pub(super) fn ended(&self) -> Result<(), ProtocolError> {
        let Some(status) = self.status else {
            return Err(ProtocolError("the server ended a stream without a final response".into()));
        };
        let announced = if self.to_head_request || matches!(status, 204 | 304) {
            Some(0)
        } else {
            self.content_length.known().map_err(|what| ProtocolError(what.into()))?
        };
        match announced.filter(|&announced| announced != self.body_bytes) {
            None => Ok(()),
            Some(announced) => Err(ProtocolError(format!(
                "the response's body has {} bytes where {announced} were announced",
                self.body_bytes
            ))),
        }
    }

    /// What takes the fields of a head, or of trailers.
    pub(super) fn section(&mut self) -> Section<'_> {
        let is_trailer = self.status.is_some();
        Section {
            stream: self,
            is_trailer,
            status: None,
            only_regular: false,
            list_bytes: 0,
            encoding: None,
            fault: None,
        }
    }
}

/// The fields of a head, or of trailers, while they are decoded.
#[derive(Debug)]
pub(super) struct Section<'a> {
    stream: &'a mut Stream,
    is_trailer: bool,
    status: Option<u16>,
    /// A field without a colon has been seen; none with one may follow.
    only_regular: bool,
    list_bytes: usize,
    encoding: Option<Vec<u8>>,
    fault: Option<&'static str>,
}

impl Section<'_> {
    /// Takes the next field. What is wrong with it is told at the end: the rest has to be decoded anyway.
    pub(super) fn field(&mut self, name: &[u8], value: &[u8]) {
        self.list_bytes += name.len() + value.len() + 32;
        if self.list_bytes > HEADER_LIST_LIMIT {
            self.fault = Some("the response's head is longer than 262144 bytes");
        } else if let Err(fault) = self.take(name, value) {
            self.fault.get_or_insert(fault);
        }
    }

    fn take(&mut self, name: &[u8], value: &[u8]) -> Result<(), &'static str> {
        if let Some(pseudo) = name.strip_prefix(b":") {
            if self.is_trailer || self.only_regular || self.status.is_some() || pseudo != b"status" {
                return Err("the response has a pseudo-header field where none may be");
            }
            let [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] = *value else {
                return Err("the response's status is no number of three digits");
            };
            self.status = Some(u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0'));
            self.stream.head.clear();
            if self.is_kept() {
                self.stream.head.extend_from_slice(b"HTTP/2 ");
                self.stream.head.extend_from_slice(value);
                self.stream.head.extend_from_slice(b"\r\n");
            }
            return Ok(());
        }
        self.only_regular = true;
        if name.is_empty() || name.iter().any(|b| b.is_ascii_uppercase() || matches!(b, 0..=32 | 127..)) {
            return Err("the response has a field whose name is none");
        }
        if value.iter().any(|b| matches!(b, b'\r' | b'\n' | 0)) {
            return Err("a field of the response contains a line end");
        }
        match name {
            b"content-length" if !self.is_trailer => {
                self.stream.content_length = self.stream.content_length.and(value);
            }
            b"connection" | b"transfer-encoding" | b"keep-alive" | b"proxy-connection" | b"upgrade" => {
                return Err("the response has a field that HTTP/2 does not allow");
            }
            b"content-encoding" if self.stream.inflate.is_some() && !self.is_trailer => {
                // Several such fields are one list (RFC 9110, 5.3).
                let list = self.encoding.get_or_insert_default();
                list.extend_from_slice(b",");
                list.extend_from_slice(value);
            }
            _ => {}
        }
        if !self.is_trailer && self.is_kept() {
            for text in [name, b": ", value, b"\r\n"] {
                self.stream.head.extend_from_slice(text);
            }
        }
        Ok(())
    }

    /// That of a redirect also unasked: where it leads is only known from it.
    fn is_kept(&self) -> bool {
        self.stream.keeps_head || matches!(self.status, Some(300..400))
    }

    /// All fields are there. `ends_stream`: nothing follows.
    pub(super) fn ended(self, ends_stream: bool) -> Result<(), ProtocolError> {
        let Self { stream, is_trailer, status, encoding, fault, .. } = self;
        if let Some(fault) = fault {
            return Err(ProtocolError(fault.into()));
        }
        if is_trailer {
            return if ends_stream { Ok(()) } else { Err(ProtocolError("trailers do not end their stream".into())) };
        }
        match status {
            None => Err(ProtocolError("the response has no status".into())),
            Some(101) => Err(ProtocolError("the server switched protocols, which HTTP/2 does not know (101)".into())),
            Some(100..200) if ends_stream => Err(ProtocolError("an interim response ends its stream".into())),
            Some(100..200) => {
                stream.interim += 1;
                // Its announcements are not those of the final one.
                stream.content_length = ContentLength::Absent;
                if stream.interim > INTERIM_LIMIT {
                    return Err(ProtocolError(format!("more than {INTERIM_LIMIT} interim (1xx) responses")));
                }
                Ok(())
            }
            Some(status) => {
                stream.status = Some(status);
                if !stream.head.is_empty() {
                    stream.head.extend_from_slice(b"\r\n");
                }
                if let Some(inflate) = &mut stream.inflate {
                    inflate.begin(encoding.as_deref());
                }
                Ok(())
            }
        }
    }
}
