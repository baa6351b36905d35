//! What is kept as it is typed.

/// Conversions by which serde keeps a value as the text that [`Display`](std::fmt::Display) shows and
/// [`FromStr`](std::str::FromStr) reads.
macro_rules! kept_as_typed {
    ($($kind:ty),*) => {$(
        impl TryFrom<String> for $kind {
            type Error = <Self as std::str::FromStr>::Err;

            fn try_from(kept: String) -> Result<Self, Self::Error> {
                kept.parse()
            }
        }

        impl From<$kind> for String {
            fn from(value: $kind) -> Self {
                value.to_string()
            }
        }
    )*};
}
