//! hey (github.com/rakyll/hey) as its users know it: its command line ([`Flags`]), and what it prints ([`summary`], [`csv`]).
//! Pure but for [`Writer`]. What the flags mean to duel, and the load itself, are the program's affair.

pub mod csv;
mod flags;
mod go;
mod output;
mod results;
mod table;
mod writer;

pub use flags::{Flags, Output, Style, Unusable};
pub use output::{errors, summary};
pub use results::Results;
pub use table::{command, help};
pub use writer::Writer;
