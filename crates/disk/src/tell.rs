//! What the user has to know before the load begins, and how far a long preparation has come.

use std::sync::OnceLock;

static NOTE: OnceLock<fn(&str)> = OnceLock::new();
static PROGRESS: OnceLock<fn(&str)> = OnceLock::new();

/// Says who shows sentences to the user, and who shows how far something has come; without the latter nobody does. The first
/// call counts.
pub fn tell_by(note: fn(&str), progress: Option<fn(&str)>) {
    let _ = NOTE.set(note);
    if let Some(progress) = progress {
        let _ = PROGRESS.set(progress);
    }
}

/// Tells a sentence.
#[cfg(target_os = "linux")]
pub(crate) fn note(sentence: &str) {
    if let Some(tell) = NOTE.get() {
        tell(sentence);
    }
}

/// Tells how far something has come; an empty text: it is over.
#[cfg(target_os = "linux")]
pub(crate) fn progress(line: &str) {
    if let Some(tell) = PROGRESS.get() {
        tell(line);
    }
}
