//! Whole numbers of slots, looked at before anything is calculated with them.
//!
//! An archive may come from somebody else, or be damaged. Counts and times are added up all over the judgement and the reports;
//! were each of these sums to expect any number, each would be a place to forget it. So a run whose numbers no run can have is
//! refused here, and every sum of what passes fits into 64 bits.

/// The largest number that one slot may hold: as nanoseconds two years, as bytes 72 PB.
const MOST: u64 = 1 << 56;
/// All numbers of a run together. No sum over a part of them is larger, and none of them is a fiftieth of it in a real run.
const MOST_TOGETHER: u64 = 1 << 62;
/// Keys of sums that have more bits, or that stop at the largest number.
const SUMS: &[u8] = b"sum_ns";
/// Keys of points in time, which nobody adds up.
const POINTS: [&[u8]; 2] = [b"offset_ns", b"started_unix_ms"];

/// What the slots of a run have come to so far.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    together: u64,
}

impl Numbers {
    /// Adds the numbers of one slot's JSON text; an error says in words which is none of a run.
    pub(crate) fn add(&mut self, json: &[u8]) -> Result<(), String> {
        let (mut key, mut at) = (&b""[..], 0);
        while let Some(&byte) = json.get(at) {
            let rest = &json[at..];
            match byte {
                b'"' => {
                    let text = string(rest);
                    at += text.len() + 2;
                    // What is no key is a value, which no number follows.
                    key = text;
                }
                b'0'..=b'9' => {
                    let length = rest.iter().position(|byte| !is_of_number(*byte)).unwrap_or(rest.len());
                    self.take(key, &rest[..length])?;
                    at += length;
                }
                // What is below zero is counted by nobody.
                b'-' => at += rest.iter().position(|byte| !is_of_number(*byte)).unwrap_or(rest.len()).max(1),
                _ => at += 1,
            }
        }
        Ok(())
    }

    fn take(&mut self, key: &[u8], literal: &[u8]) -> Result<(), String> {
        if key.ends_with(SUMS) || !literal.iter().all(u8::is_ascii_digit) {
            return Ok(());
        }
        let number = std::str::from_utf8(literal).ok().and_then(|digits| digits.parse::<u64>().ok());
        let Some(number) = number.filter(|&number| number <= MOST) else {
            let (key, literal) = (String::from_utf8_lossy(key), String::from_utf8_lossy(literal));
            return Err(format!("'{key}' is {literal}, which no run comes to"));
        };
        if !POINTS.contains(&key) {
            self.together = self.together.saturating_add(number);
        }
        if self.together > MOST_TOGETHER {
            return Err("its numbers and those before it come to more than any run does".to_owned());
        }
        Ok(())
    }
}

/// The text of a string that begins here, without its quotes; up to the end where it has none.
fn string(json: &[u8]) -> &[u8] {
    let mut end = 1;
    while let Some(&byte) = json.get(end) {
        match byte {
            b'"' => break,
            b'\\' => end += 2,
            _ => end += 1,
        }
    }
    json.get(1..end).unwrap_or_default()
}

fn is_of_number(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn added(json: &str) -> Result<u64, String> {
        let mut numbers = Numbers::default();
        numbers.add(json.as_bytes()).map(|()| numbers.together)
    }

    #[test]
    fn whole_numbers_are_found_and_nothing_else() {
        assert_eq!(added(r#"{"a":1,"b":[[2,3],[4,5]],"c":{"200":6}}"#), Ok(21));
        assert_eq!(added(r#"{"a":0.5,"b":1e300,"c":-7,"d":"9999999999999999999999","e\"9":1,"f":"\\"}"#), Ok(1));
        assert_eq!(added(r#"{"sum_ns":99999999999999999999,"offset_ns":5,"x":2}"#), Ok(2));
        for broken in ["", "\"", "\"\\", "-", "{\"a\":-", "[1,"] {
            assert!(added(broken).is_ok(), "{broken}: that it is no JSON is for others to say");
        }
    }

    #[test]
    fn what_no_run_comes_to_is_refused() {
        for number in ["72057594037927937", "18446744073709551615", "18446744073709551616", "99999999999999999999999"] {
            let why = added(&format!("{{\"ok\":{number}}}")).unwrap_err();
            assert_eq!(why, format!("'ok' is {number}, which no run comes to"));
        }
        let mut numbers = Numbers::default();
        let most = format!("{{\"ok\":{MOST}}}");
        let taken = (0..1000).take_while(|_| numbers.add(most.as_bytes()).is_ok()).count();
        assert_eq!(taken as u64, MOST_TOGETHER / MOST);
    }

    #[test]
    fn real_slots_are_far_from_the_limits() {
        let mut numbers = Numbers::default();
        for index in 0..100 {
            numbers.add(&serde_json::to_vec(&sample::slot(index)).unwrap()).unwrap();
        }
        assert!(numbers.together < MOST_TOGETHER / 1_000, "{}", numbers.together);
    }
}
