//! What a server's threads sleep in.

use duel_model::Sleepers;

/// Different functions that are kept: servers sleep in a handful.
const MOST_FUNCTIONS: usize = 64;
/// Longest name that is taken for one: the kernel's own limit is 512, and names of that length are generated.
const LONGEST_NAME: usize = 64;

/// Reads one look, which has a line for each thread. Nothing was seen where no thread is told: then the kernel hides them.
pub(crate) fn sleepers(text: &str) -> Sleepers {
    let mut seen = Sleepers { looks: 1, ..Sleepers::default() };
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().take(4).collect();
        let (function, behind) = match words.as_slice() {
            ["calls", "are", "told"] => {
                seen.looks_at_calls = 1;
                continue;
            }
            [function, behind @ ..] if is_function(function) => (*function, behind),
            _ => continue,
        };
        match behind {
            [] => {}
            ["untimed"] => seen.without_timeout += 1,
            ["log"] => seen.in_logs += 1,
            // A sentence.
            _ => continue,
        }
        if let Some(threads) = seen.threads.get_mut(function) {
            *threads += 1;
        } else if seen.threads.len() < MOST_FUNCTIONS {
            seen.threads.insert(function.to_owned(), 1);
        }
    }
    if seen.threads.is_empty() {
        return Sleepers::default();
    }
    if seen.looks_at_calls > 0 && seen.in_logs > 0 {
        seen.looks_at_logs = 1;
        seen.without_timeout_beside_logs = seen.without_timeout;
    }
    seen
}

/// `0` is a thread that runs, or one that may not be seen.
fn is_function(word: &str) -> bool {
    let begins = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    begins && word.len() <= LONGEST_NAME && word.chars().all(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_counted_by_what_they_sleep_in() {
        let mut seen = sleepers("futex_wait_queue untimed\nfutex_wait_queue untimed\nfutex_wait_queue\n0\n");
        seen.add(&sleepers("hrtimer_nanosleep\nfutex_wait_queue\n0\n\n"));
        assert_eq!((seen.looks, seen.without_timeout), (2, 2));
        assert_eq!(seen.mean(|function| function.contains("futex")), Some(2.0));
        assert_eq!(seen.mean(|function| function == "hrtimer_nanosleep"), Some(0.5));
        assert_eq!(seen.mean(|function| function == "ep_poll"), Some(0.0));
        assert_eq!(seen.mean_without_timeout(), Some(1.0));
    }

    #[test]
    fn who_waits_for_another_thread_while_one_is_in_the_log_is_counted_for_itself() {
        let in_log =
            "futex_do_wait untimed\njbd2_log_wait_commit log\nfutex_do_wait untimed\nfutex_do_wait\ncalls are told\n";
        let mut seen = sleepers(in_log);
        // Data is flushed as well, by threads that no transaction waits for.
        seen.add(&sleepers("futex_do_wait untimed\nfolio_wait_bit_common\ncalls are told\n"));
        assert_eq!((seen.looks, seen.looks_at_calls, seen.looks_at_logs), (2, 2, 1));
        assert_eq!((seen.in_logs, seen.without_timeout, seen.without_timeout_beside_logs), (1, 3, 2));
        assert_eq!(seen.mean(|function| function == "jbd2_log_wait_commit"), Some(0.5));
        let untold = sleepers("jbd2_log_wait_commit log\n");
        assert_eq!((untold.looks, untold.looks_at_calls, untold.looks_at_logs), (1, 0, 0));
        assert_eq!(sleepers("0\ncalls are told\n"), Sleepers::default());
        assert_eq!(sleepers("x log at last\nx of data\n"), Sleepers::default());
    }

    #[test]
    fn what_is_hidden_is_not_known() {
        for text in ["", "0\n0\n", "0 untimed\n", "duel: too many threads\n"] {
            assert_eq!(sleepers(text), Sleepers::default(), "{text:?}");
            assert_eq!((sleepers(text).mean(|_| true), sleepers(text).mean_without_timeout()), (None, None));
        }
    }

    #[test]
    fn what_is_no_name_of_a_function_is_left_out() {
        let long = "x".repeat(65);
        let seen = sleepers(&format!("ep_poll\n\x1b[2J\n{long}\nsh: 1: cannot open\n1f\n"));
        assert_eq!(seen.threads.keys().collect::<Vec<_>>(), ["ep_poll"]);
        let many: String = (0..1000).map(|n| format!("f{n}\n")).collect();
        assert_eq!(sleepers(&many).threads.len(), MOST_FUNCTIONS);
    }
}
