//! What an application does for a request besides answering it: faults that no packaged server has.

/// What an application does for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handler {
    Plain,
    /// Waits without using the CPU.
    Sleeps {
        us: u64,
    },
    /// Computes.
    Burns {
        us: u64,
    },
    /// Waits while it holds a lock: one of the connection's own, or one that all connections share.
    Locks {
        us: u64,
        shared: bool,
    },
    /// One request of so many waits.
    SlowShare {
        every: u32,
        us: u64,
    },
    /// So many requests are let through in each window; the others wait for the next one.
    Limits {
        per_window: u32,
        window_us: u64,
    },
}

impl Handler {
    /// As [`Handler::parse`] reads it.
    pub(crate) fn word(self) -> String {
        match self {
            Handler::Plain => "plain".to_owned(),
            Handler::Sleeps { us } => format!("sleeps:{us}"),
            Handler::Burns { us } => format!("burns:{us}"),
            Handler::Locks { us, shared } => format!("locks:{us}:{}", u8::from(shared)),
            Handler::SlowShare { every, us } => format!("slow-share:{every}:{us}"),
            Handler::Limits { per_window, window_us } => format!("limits:{per_window}:{window_us}"),
        }
    }

    /// Reads what [`Handler::word`] wrote.
    pub(crate) fn parse(word: &str) -> Result<Handler, String> {
        let mut parts = word.split(':');
        let name = parts.next().unwrap_or_default();
        let numbers: Vec<u64> =
            parts.map(str::parse).collect::<Result<_, _>>().map_err(|error| format!("{word}: {error}"))?;
        let small = |number: u64| u32::try_from(number).ok().filter(|number| *number > 0);
        let handler = match (name, numbers.as_slice()) {
            ("plain", []) => Some(Handler::Plain),
            ("sleeps", &[us]) => Some(Handler::Sleeps { us }),
            ("burns", &[us]) => Some(Handler::Burns { us }),
            ("locks", &[us, shared @ (0 | 1)]) => Some(Handler::Locks { us, shared: shared == 1 }),
            ("slow-share", &[every, us]) => small(every).map(|every| Handler::SlowShare { every, us }),
            ("limits", &[count, window_us]) if window_us > 0 => {
                small(count).map(|per_window| Handler::Limits { per_window, window_us })
            }
            _ => None,
        };
        handler.ok_or_else(|| format!("{word} is no handler"))
    }
}
