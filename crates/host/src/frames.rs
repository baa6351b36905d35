//! Frames: which part of a host's output is the answer to what.

use duel_model::sanitize_line;
use std::io::{self, BufRead};

/// Longest content of a frame. Facts and samples have a tenth of it on a large host.
const LONGEST_FRAME_BYTES: usize = 1 << 20;
/// Longest line; the list of a CPU's flags has 2 kB.
const LONGEST_LINE_BYTES: usize = 64 << 10;
/// Lines outside frames that are kept, to be told when no frame comes.
const MOST_STRAY_LINES: usize = 8;

/// Content of one frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Its name, such as `cpuinfo` or `sample 7`.
    pub(crate) name: String,
    /// What the command that printed it ended with; `None` where the frame did not end in order.
    pub(crate) status: Option<i32>,
    /// What it printed.
    pub(crate) text: String,
    /// Whether it was longer than is kept.
    pub(crate) truncated: bool,
}

impl Frame {
    /// Takes what it has of the room that is left; one that has no room any more is given up as a whole, and said to be cut.
    pub(crate) fn within(mut self, room: &mut usize) -> Self {
        match room.checked_sub(self.text.len()) {
            Some(left) => *room = left,
            None => (self.text, self.truncated) = (String::new(), true),
        }
        self
    }
}

/// Sorts lines into frames. A frame begins and ends with a line that starts with the marker, which is random: content
/// cannot forge one.
pub(crate) struct Frames {
    begin: String,
    end: String,
    open: Option<Frame>,
    /// What was printed outside of frames, safe to show.
    pub(crate) stray: Vec<String>,
}

impl Frames {
    pub(crate) fn new(marker: &str) -> Self {
        Self { begin: format!("{marker} + "), end: format!("{marker} - "), open: None, stray: Vec::new() }
    }

    /// Takes one line without its end; gives a frame when it is whole.
    pub(crate) fn line(&mut self, line: &str) -> Option<Frame> {
        if let Some(name) = line.strip_prefix(&self.begin) {
            let new = Frame { name: name.to_owned(), status: None, text: String::new(), truncated: false };
            return self.open.replace(new);
        }
        if let Some(rest) = line.strip_prefix(&self.end) {
            let (name, status) = rest.rsplit_once(' ').unwrap_or((rest, ""));
            if self.open.as_ref().is_some_and(|open| open.name == name) {
                let mut frame = self.open.take()?;
                frame.status = status.parse().ok();
                // The script ends unfinished lines, and so adds an end to finished ones.
                if frame.text.ends_with("\n\n") {
                    frame.text.pop();
                }
                return Some(frame);
            }
            return None;
        }
        match &mut self.open {
            Some(open) if open.text.len() + line.len() < LONGEST_FRAME_BYTES => {
                open.text.push_str(line);
                open.text.push('\n');
            }
            Some(open) => open.truncated = true,
            None if self.stray.len() < MOST_STRAY_LINES && !line.trim().is_empty() => {
                self.stray.push(sanitize_line(line));
            }
            None => {}
        }
        None
    }
}

/// Reads a line without its end, of which no more than [`LONGEST_LINE_BYTES`] are kept; `None` at the end of input.
pub(crate) fn bounded_line(input: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let mut any = false;
    loop {
        let buffer = match input.fill_buf() {
            Ok(buffer) => buffer,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if buffer.is_empty() {
            return Ok(any.then(|| String::from_utf8_lossy(&line).into_owned()));
        }
        any = true;
        let end = buffer.iter().position(|&byte| byte == b'\n');
        let part = end.unwrap_or(buffer.len());
        let room = LONGEST_LINE_BYTES.saturating_sub(line.len());
        line.extend_from_slice(&buffer[..part.min(room)]);
        input.consume(end.map_or(part, |end| end + 1));
        if end.is_some() {
            return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frames_of(marker: &str, text: &str) -> Vec<Frame> {
        let mut frames = Frames::new(marker);
        text.lines().filter_map(|line| frames.line(line)).collect()
    }

    #[test]
    fn content_keeps_its_lines_and_cannot_forge_a_frame() {
        let text = "motd\nMM + a\none\n\nMM- a 0\nXX - a 0\n mm - a 0\n MM - a 0\n\nMM - a 3\nMM + b 2\nunfinished\nMM - b 2 0\n";
        let frames = frames_of("MM", text);
        assert_eq!(frames.len(), 2);
        assert_eq!(frames[0].text, "one\n\nMM- a 0\nXX - a 0\n mm - a 0\n MM - a 0\n");
        assert_eq!((frames[0].status, frames[1].status), (Some(3), Some(0)));
        assert_eq!((frames[1].name.as_str(), frames[1].text.as_str()), ("b 2", "unfinished\n"));
    }

    #[test]
    fn a_frame_that_never_ends_is_given_when_the_next_begins() {
        let frames = frames_of("M", "M + a\nx\nM + b\nM - a 0\nM - b 0\n");
        assert_eq!((frames[0].name.as_str(), frames[0].status), ("a", None));
        assert_eq!((frames[1].name.as_str(), frames[1].status), ("b", Some(0)));
    }

    #[test]
    fn megabytes_are_cut_and_said_to_be() {
        let mut frames = Frames::new("M");
        frames.line("M + a");
        for _ in 0..100_000 {
            frames.line(&"x".repeat(100));
        }
        let frame = frames.line("M - a 0").unwrap();
        assert!(frame.truncated && frame.text.len() <= LONGEST_FRAME_BYTES);
        for _ in 0..1000 {
            frames.line("stray \x1b[2J");
        }
        assert_eq!(frames.stray.len(), MOST_STRAY_LINES);
        assert!(!frames.stray[0].contains('\x1b'));
    }

    #[test]
    fn frames_together_take_no_more_than_the_room() {
        let frame = |text: &str| Frame { name: "a".into(), status: Some(0), text: text.into(), truncated: false };
        let mut room = 5;
        let taken: Vec<_> = ["abc", "defg", "hi"].map(|text| frame(text).within(&mut room)).into();
        assert_eq!(taken.iter().map(|frame| frame.text.as_str()).collect::<Vec<_>>(), ["abc", "", "hi"]);
        assert_eq!((taken[0].truncated, taken[1].truncated, room), (false, true, 0));
    }

    #[test]
    fn endless_lines_are_cut() {
        let mut input =
            io::BufReader::with_capacity(1000, io::Cursor::new([vec![b'x'; 1 << 20], b"\nnext".to_vec()].concat()));
        assert_eq!(bounded_line(&mut input).unwrap().unwrap().len(), LONGEST_LINE_BYTES);
        assert_eq!(bounded_line(&mut input).unwrap().unwrap(), "next");
        assert_eq!(bounded_line(&mut input).unwrap(), None);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(lines in prop::collection::vec("(M [+-] )?[a-b ]{0,3}[0-9]?.{0,8}", 0..40)) {
            let mut frames = Frames::new("M");
            for line in &lines {
                frames.line(line);
            }
        }
    }
}
