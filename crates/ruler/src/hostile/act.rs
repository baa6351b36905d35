//! What liars are made of.

use super::guise::Guise;
use super::wire::Wire;
use std::io;
use std::time::Duration;

/// A single thing that a liar does.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// Reads a request's head, to its empty line.
    Hear,
    /// HTTP/2: reads until a request has begun, acknowledges settings, and remembers the stream.
    HearStream,
    /// Says these bytes.
    Say(&'static [u8]),
    /// Says a text in which `{port}` is its own port, and `{n}` a number that is never the same.
    Tell(&'static str),
    /// Says what a function makes.
    Made(fn() -> Vec<u8>),
    /// Says one byte, so often.
    Fill(u8, usize),
    /// Says these bytes one at a time, with so many milliseconds before each.
    Drip(&'static [u8], u64),
    /// HTTP/2: a frame of this kind, with these flags.
    Frame(u8, u8, On, &'static [u8]),
    /// The same, with a payload that a function makes.
    FrameOf(u8, u8, On, fn() -> Vec<u8>),
    /// The same where the length says something else than the payload has.
    FrameLying(u8, u8, On, u32, &'static [u8]),
    /// Says again what it heard last.
    Echo,
    /// Does nothing for so many milliseconds.
    Pause(u64),
    /// Neither reads nor writes any more.
    Deaf,
    /// Ends its direction, and reads on.
    Finish,
    /// Ends the connection.
    Close,
    /// Resets the connection.
    Reset,
    /// All of these, so often.
    Times(u32, &'static [Act]),
    /// All of these, until the client goes.
    Forever(&'static [Act]),
    /// A TLS handshake as a server; what follows is said inside.
    Secure(Guise),
    /// Bytes below TLS, as they are.
    Raw(&'static [u8]),
    /// The same, made by a function.
    RawMade(fn() -> Vec<u8>),
    /// Says this in a TLS record of which only the first half leaves.
    Torn(&'static [u8]),
    /// Says this in a TLS record in which one bit is wrong.
    Flipped(&'static [u8]),
    /// Sends no part of the handshake after its first flight.
    HalfSecure(Guise),
    /// TLS 1.3: says that its keys change.
    NewKeys,
    /// Tells the client by TLS that nothing more comes.
    Farewell,
}

/// Which HTTP/2 stream a frame is for.
#[derive(Clone, Copy, Debug)]
pub enum On {
    /// The connection.
    Connection,
    /// The request that was heard last.
    Asked,
    /// This one.
    Stream(u32),
    /// Another one each time, by even numbers.
    Next,
}

/// After so much a liar that goes on for ever takes its time: whoever keeps it all has been found out by then, and the
/// others on the machine want to run, too.
const BURST_BYTES: u64 = 256 << 20;
/// The pause for each [`super::wire::ENOUGH_BYTES`] from then on: some 20 MB/s.
const PAUSE: Duration = Duration::from_millis(3);

/// Carries the acts out. An error is a client that has gone, or the liar's end.
pub(super) fn perform(acts: &[Act], wire: &mut Wire) -> io::Result<()> {
    for act in acts {
        perform_one(act, wire)?;
    }
    wire.flush()
}

fn perform_one(act: &Act, wire: &mut Wire) -> io::Result<()> {
    match *act {
        Act::Hear => wire.hear().map(|_| ()),
        Act::HearStream => wire.hear_stream(),
        Act::Say(bytes) => wire.say(bytes),
        Act::Tell(text) => {
            let text = text.replace("{port}", &wire.port().to_string()).replace("{n}", &wire.next_number().to_string());
            wire.say(text.as_bytes())
        }
        Act::Made(make) => wire.say(&make()),
        Act::Fill(byte, count) => {
            let piece = vec![byte; count.min(64 << 10)];
            let mut left = count;
            while left > 0 {
                let now = left.min(piece.len());
                wire.say(&piece[..now])?;
                left -= now;
            }
            Ok(())
        }
        Act::Drip(bytes, ms) => {
            for byte in bytes {
                wire.pause(Duration::from_millis(ms))?;
                wire.say(std::slice::from_ref(byte))?;
                wire.flush()?;
            }
            Ok(())
        }
        Act::Frame(kind, flags, on, payload) => wire.frame(kind, flags, on, payload.len() as u32, payload),
        Act::FrameOf(kind, flags, on, make) => {
            let payload = make();
            wire.frame(kind, flags, on, payload.len() as u32, &payload)
        }
        Act::FrameLying(kind, flags, on, length, payload) => wire.frame(kind, flags, on, length, payload),
        Act::Echo => wire.echo(),
        Act::Pause(ms) => wire.pause(Duration::from_millis(ms)),
        Act::Deaf => wire.deaf(),
        Act::Finish => wire.finish(),
        Act::Close => wire.close(),
        Act::Reset => wire.reset(),
        Act::Times(count, acts) => (0..count).try_for_each(|_| acts.iter().try_for_each(|act| perform_one(act, wire))),
        Act::Forever(acts) => loop {
            acts.iter().try_for_each(|act| perform_one(act, wire))?;
            if wire.sent_bytes() > BURST_BYTES {
                wire.slow_down(PAUSE)?;
            }
        },
        Act::Secure(guise) => wire.secure(guise),
        Act::Raw(bytes) => wire.raw(bytes),
        Act::RawMade(make) => wire.raw(&make()),
        Act::Torn(bytes) => wire.record(bytes, |record| record.truncate(record.len() / 2)),
        Act::Flipped(bytes) => wire.record(bytes, |record| {
            if let Some(last) = record.last_mut() {
                *last ^= 1;
            }
        }),
        Act::HalfSecure(guise) => wire.half_secure(guise),
        Act::NewKeys => wire.new_keys(),
        Act::Farewell => wire.farewell(),
    }
}
