//! Requests and responses.

use super::Served;
use crate::protocol::WORD_BYTES;
use std::io::{self, Read};

/// Answers each request with a response that begins as it did.
pub(super) fn serve(mut served: Served<'_>) -> io::Result<()> {
    let (asked, answered) = (served.hello.block as usize, served.hello.response as usize);
    let mut request = vec![0; asked.min(64 << 10)];
    let mut response = served.payload[..answered.min(served.payload.len())].to_vec();
    loop {
        let mut have = 0;
        let mut begin = [0; WORD_BYTES];
        while have < asked {
            let room = (asked - have).min(request.len());
            let n = match served.stream.read(&mut request[..room]) {
                Ok(0) => return Ok(()),
                Ok(n) => n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            for (at, byte) in request[..n].iter().enumerate().take(WORD_BYTES.saturating_sub(have)) {
                begin[have + at] = *byte;
            }
            have += n;
            if have < asked && served.is_over() {
                return Ok(());
            }
        }
        let echoed = WORD_BYTES.min(asked).min(answered);
        response[..echoed].copy_from_slice(&begin[..echoed]);
        if !served.send_block(&response, answered)? || served.is_over() {
            return Ok(());
        }
    }
}
