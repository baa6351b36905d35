//! What each path means. The table for people is in the crate's documentation.

use std::time::Duration;

use crate::http::number;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// A behaviour, without its parameters: what the truth is counted by.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind { $($(#[$doc])* $kind,)* }

        impl Kind {
            /// Every kind, in the order of its discriminant.
            pub const ALL: &'static [Kind] = &[$(Kind::$kind,)*];

            /// The first segment of its path, or a word in brackets where there is none.
            pub fn name(self) -> &'static str {
                match self { $(Kind::$kind => $name,)* }
            }
        }
    };
}

kinds! {
    /// `/`
    Page = "(page)",
    /// `/size/N`
    Size = "size",
    /// `/file`
    File = "file",
    /// `/chunked/N`
    Chunked = "chunked",
    /// `/until-close/N`
    UntilClose = "until-close",
    /// `/delay/US`
    Delay = "delay",
    /// `/serial/US`
    Serial = "serial",
    /// `/stall-once/MS/AFTER`
    StallOnce = "stall-once",
    /// `/early-close`
    EarlyClose = "early-close",
    /// `/reset`
    Reset = "reset",
    /// `/short-body`
    ShortBody = "short-body",
    /// `/garbage`
    Garbage = "garbage",
    /// `/drip/N/US`
    Drip = "drip",
    /// `/slow-head/US`
    SlowHead = "slow-head",
    /// `/huge-headers/KIB`
    HugeHeaders = "huge-headers",
    /// `/interim/N`
    Interim = "interim",
    /// `/errors/PERCENT`
    Errors = "errors",
    /// `/status/CODE`
    Status = "status",
    /// `/redirect/PATH`
    Redirect = "redirect",
    /// `/never`
    Never = "never",
    /// `/endless-headers`
    EndlessHeaders = "endless-headers",
    /// `/bad-chunk`
    BadChunk = "bad-chunk",
    /// `/negative-length`
    NegativeLength = "negative-length",
    /// `/two-lengths`
    TwoLengths = "two-lengths",
    /// `/escape`
    Escape = "escape",
    /// `/gzip/US`
    Gzip = "gzip",
    /// `/burn/US`
    Burn = "burn",
    /// `/rate/BYTES_PER_S/N`
    Rate = "rate",
    /// `/header-echo`
    HeaderEcho = "header-echo",
    /// `/truth`
    Truth = "truth",
    /// Any other path: 404.
    NotFound = "(not found)",
}

/// The length of `/file`: about that of a small photograph, and no multiple of anything.
pub const FILE_LEN: u64 = 2_860_007;

/// A path with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Page,
    Size(u64),
    File,
    Chunked(u64),
    UntilClose(u64),
    Delay(Duration),
    Serial(Duration),
    StallOnce { length: Duration, after: u64 },
    EarlyClose,
    Reset,
    ShortBody,
    Garbage,
    Drip { bytes: u64, every: Duration },
    SlowHead(Duration),
    HugeHeaders { kib: u64 },
    Interim(u64),
    Errors { percent: u8 },
    Status(u16),
    Redirect,
    Never,
    EndlessHeaders,
    BadChunk,
    NegativeLength,
    TwoLengths,
    Escape,
    Gzip(Duration),
    Burn(Duration),
    Rate { bytes_per_s: u64, bytes: u64 },
    HeaderEcho,
    Truth,
    NotFound,
}

impl Route {
    /// A path whose parameters do not fit is not found.
    pub(crate) fn parse(path: &[u8]) -> Route {
        Route::known(path).unwrap_or(Route::NotFound)
    }

    fn known(path: &[u8]) -> Option<Route> {
        let rest = path.strip_prefix(b"/")?;
        if rest.is_empty() {
            return Some(Route::Page);
        }
        if rest.starts_with(b"redirect/") {
            return Some(Route::Redirect);
        }
        let mut parts = rest.split(|&byte| byte == b'/');
        let name = parts.next()?;
        let (first, second) = (parts.next().map(number), parts.next().map(number));
        if parts.next().is_some() {
            return None;
        }
        let micros = |us: u64| Duration::from_micros(us);
        Some(match (name, first, second) {
            (b"size", Some(Some(bytes)), None) => Route::Size(bytes),
            (b"file", None, None) => Route::File,
            (b"chunked", Some(Some(bytes)), None) => Route::Chunked(bytes),
            (b"until-close", Some(Some(bytes)), None) => Route::UntilClose(bytes),
            (b"delay", Some(Some(us)), None) => Route::Delay(micros(us)),
            (b"serial", Some(Some(us)), None) => Route::Serial(micros(us)),
            (b"stall-once", Some(Some(ms)), Some(Some(after))) if after > 0 => {
                Route::StallOnce { length: Duration::from_millis(ms), after }
            }
            (b"early-close", None, None) => Route::EarlyClose,
            (b"reset", None, None) => Route::Reset,
            (b"short-body", None, None) => Route::ShortBody,
            (b"garbage", None, None) => Route::Garbage,
            (b"drip", Some(Some(bytes)), Some(Some(us))) => Route::Drip { bytes, every: micros(us) },
            (b"slow-head", Some(Some(us)), None) => Route::SlowHead(micros(us)),
            (b"huge-headers", Some(Some(kib)), None) => Route::HugeHeaders { kib },
            (b"interim", Some(Some(count)), None) => Route::Interim(count),
            (b"errors", Some(Some(percent @ 0..=100)), None) => Route::Errors { percent: percent as u8 },
            (b"status", Some(Some(code @ 200..=599)), None) => Route::Status(code as u16),
            (b"never", None, None) => Route::Never,
            (b"endless-headers", None, None) => Route::EndlessHeaders,
            (b"bad-chunk", None, None) => Route::BadChunk,
            (b"negative-length", None, None) => Route::NegativeLength,
            (b"two-lengths", None, None) => Route::TwoLengths,
            (b"escape", None, None) => Route::Escape,
            (b"gzip", None, None) => Route::Gzip(Duration::ZERO),
            (b"gzip", Some(Some(us)), None) => Route::Gzip(micros(us)),
            (b"burn", Some(Some(us)), None) => Route::Burn(micros(us)),
            (b"rate", Some(Some(bytes_per_s)), Some(Some(bytes))) if bytes_per_s > 0 => {
                Route::Rate { bytes_per_s, bytes }
            }
            (b"header-echo", None, None) => Route::HeaderEcho,
            (b"truth", None, None) => Route::Truth,
            _ => return None,
        })
    }

    pub(crate) fn kind(self) -> Kind {
        match self {
            Route::Page => Kind::Page,
            Route::Size(_) => Kind::Size,
            Route::File => Kind::File,
            Route::Chunked(_) => Kind::Chunked,
            Route::UntilClose(_) => Kind::UntilClose,
            Route::Delay(_) => Kind::Delay,
            Route::Serial(_) => Kind::Serial,
            Route::StallOnce { .. } => Kind::StallOnce,
            Route::EarlyClose => Kind::EarlyClose,
            Route::Reset => Kind::Reset,
            Route::ShortBody => Kind::ShortBody,
            Route::Garbage => Kind::Garbage,
            Route::Drip { .. } => Kind::Drip,
            Route::SlowHead(_) => Kind::SlowHead,
            Route::HugeHeaders { .. } => Kind::HugeHeaders,
            Route::Interim(_) => Kind::Interim,
            Route::Errors { .. } => Kind::Errors,
            Route::Status(_) => Kind::Status,
            Route::Redirect => Kind::Redirect,
            Route::Never => Kind::Never,
            Route::EndlessHeaders => Kind::EndlessHeaders,
            Route::BadChunk => Kind::BadChunk,
            Route::NegativeLength => Kind::NegativeLength,
            Route::TwoLengths => Kind::TwoLengths,
            Route::Escape => Kind::Escape,
            Route::Gzip(_) => Kind::Gzip,
            Route::Burn(_) => Kind::Burn,
            Route::Rate { .. } => Kind::Rate,
            Route::HeaderEcho => Kind::HeaderEcho,
            Route::Truth => Kind::Truth,
            Route::NotFound => Kind::NotFound,
        }
    }
}

/// Whether the request with this number (from 0) is one of the `percent` in 100 that fail: of the first n, always
/// `n * percent / 100`, so they are spread evenly and every hundred holds exactly `percent`.
pub(crate) fn fails(number: u64, percent: u8) -> bool {
    let failed_of = |count: u64| count % 100 * u64::from(percent) / 100;
    // Every hundred is alike, so only the place within it matters and nothing overflows.
    match number % 100 {
        99 => u64::from(percent) > failed_of(99),
        place => failed_of(place + 1) > failed_of(place),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_stands_at_its_own_index() {
        for (index, kind) in Kind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, index);
        }
    }

    #[test]
    fn paths() {
        assert_eq!(Route::parse(b"/"), Route::Page);
        assert_eq!(Route::parse(b"/size/42"), Route::Size(42));
        assert_eq!(Route::parse(b"/gzip"), Route::Gzip(Duration::ZERO));
        assert_eq!(Route::parse(b"/redirect/size/42"), Route::Redirect);
        for path in [
            "",
            "*",
            "/size",
            "/size/",
            "/size/-1",
            "/size/1/",
            "/size/1/2",
            "/size/99999999999999999999",
            "/errors/101",
            "/status/100",
            "/status/600",
            "/rate/0/5",
            "/stall-once/1/0",
            "/file/1",
            "/nothing",
        ] {
            assert_eq!(Route::parse(path.as_bytes()), Route::NotFound, "{path}");
        }
    }

    #[test]
    fn errors_are_exact_and_even() {
        for percent in 0..=100 {
            for start in [0, 100, u64::MAX / 100 * 100 - 100] {
                let failed = (start..start + 100).filter(|&number| fails(number, percent)).count();
                assert_eq!(failed, usize::from(percent));
            }
        }
        assert_eq!((0..8).map(|number| fails(number, 25)).filter(|&failed| failed).count(), 2);
        assert!(fails(3, 25) && fails(7, 25));
    }
}
