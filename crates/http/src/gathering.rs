//! Whether more had better come before anything is read again.

use duel_model::{MICROSECOND_NS, Nanos};

/// A server writes a large body over TLS record by record, of 16 KiB each. Who takes each as it comes acknowledges every other one, and the
/// server pays for hearing of that: 86 times for 2.86 MB. Taken by fifties of microseconds it is 35 times, and the server, at its limit,
/// gives 3 to 5 % more (`method/measuring.md`). At 100 it is no better.
const GATHERS_NS: Nanos = 50 * MICROSECOND_NS;
/// With less than this to come, which is more than comes within [`GATHERS_NS`] over TLS, the last byte is near, and it ends an op.
const MUCH_BYTES: u64 = 256 * 1024;

/// What came in a turn of the loop.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    events: u32,
    /// Events that brought a part of a large body, and no more.
    parts: u32,
}

impl Gathering {
    /// An event is heard.
    #[inline]
    pub(crate) fn hears(&mut self) {
        self.events += 1;
    }

    /// All that was there is read, and so many bytes of the body are to come.
    #[inline]
    pub(crate) fn has_drained(&mut self, is_encrypted: bool, left_bytes: u64) {
        self.parts += u32::from(is_encrypted && left_bytes >= MUCH_BYTES);
    }

    /// For how long to wait for more; a turn ends with it.
    #[inline]
    pub(crate) fn gathers_ns(&mut self) -> Nanos {
        let is_all = self.parts > 0 && self.parts == self.events;
        (self.events, self.parts) = (0, 0);
        if is_all { GATHERS_NS } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_waited_for_where_nothing_but_parts_of_large_bodies_came() {
        let after = |heard: &[Option<(bool, u64)>]| {
            let mut gathering = Gathering::default();
            for part in heard {
                gathering.hears();
                if let Some((is_encrypted, left_bytes)) = part {
                    gathering.has_drained(*is_encrypted, *left_bytes);
                }
            }
            [gathering.gathers_ns(), gathering.gathers_ns()]
        };
        let part = Some((true, MUCH_BYTES));
        assert_eq!(after(&[part]), [GATHERS_NS, 0], "once");
        assert_eq!(after(&[part, part]), [GATHERS_NS, 0]);
        for (what, heard) in [
            ("nothing came", &[][..]),
            ("an answer was whole, or a connection is new", &[part, None]),
            ("its end is near", &[Some((true, MUCH_BYTES - 1))]),
            ("its length is not known", &[Some((true, 0))]),
            ("it does not come in records", &[Some((false, 10 * MUCH_BYTES))]),
        ] {
            assert_eq!(after(heard), [0, 0], "{what}");
        }
    }
}
