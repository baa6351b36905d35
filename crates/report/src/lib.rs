//! The same facts as terminal text, JSON, charts, a page and files for other programs; decides nothing.
//!
//! Functions from model values to text: no terminal, no environment, no clock. What a terminal can do comes in as a
//! [`Style`], what the numbers mean comes in as a [`Verdict`](duel_model::Verdict). Every text that a server or a user
//! wrote is made safe before it is laid out, and no line is longer than the style's width, except an address or a
//! command that has to stay in one piece to be copied.

mod about;
mod cache;
mod calendar;
mod chart;
mod charts;
mod contest;
mod diff;
mod experiment;
mod explanation;
mod export;
mod facts;
mod figures;
mod json;
mod junit;
mod last_words;
mod leads;
mod level_chart;
mod line;
mod listing;
mod markup;
mod negotiated;
mod page;
mod phases;
mod plot;
mod progress;
mod search;
mod sentence;
mod settings;
mod single;
mod spans;
mod stages;
mod style;
mod summary;
mod table;
mod text;
mod totals;
mod watched;

pub use calendar::utc;
pub use charts::{Chart, charts};
pub use diff::diff;
pub use explanation::explanation;
pub use export::{ExportError, Format, export};
pub use facts::facts;
pub use json::{Document, json, json_facts, json_failure, json_status, json_text, safe_json};
pub use junit::{JunitCase, JunitOutcome, JunitSuite};
pub use listing::{RunRow, list};
pub use page::{Command, page};
pub use plot::Layout;
pub use progress::{ProgressFrame, TargetProgress, progress_line, progress_plain, progress_terminal};
pub use sentence::{is_lower_bound, pair_sentence, told_first, verdict_sentence};
pub use settings::Again;
pub use style::Style;
pub use summary::summary;
