//! Arguments of programs that write a title over them.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// What `/proc/PID/cmdline` holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommandLine {
    /// Arguments, the program's name first.
    Arguments(Vec<OsString>),
    /// Arguments read from the title that nginx's main process shows. What was written over them reaches into the
    /// environment, which is lost.
    NginxTitle(Vec<OsString>),
    /// A title that tells no arguments.
    Title(String),
    /// Nothing: a process of the kernel, or one that is ending.
    Nothing,
}

/// nginx's main process shows its arguments behind this (`ngx_master_process_cycle`), with a space between them.
const NGINX: &[u8] = b"nginx: master process ";
/// Options of nginx that take a value.
const WITH_VALUE: [&[u8]; 5] = [b"-c", b"-e", b"-g", b"-p", b"-s"];

/// Understands a command line. Never fails: what it cannot tell apart is arguments.
pub(crate) fn command_line(bytes: &[u8]) -> CommandLine {
    let text = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    if text.is_empty() {
        return CommandLine::Nothing;
    }
    // Programs that show a title pad it with zero bytes or spaces.
    let words: Vec<&[u8]> = text.split(|&byte| byte == 0).collect();
    let title = words[0].trim_ascii_end();
    if let Some(arguments) = title.strip_prefix(NGINX) {
        return CommandLine::NginxTitle(nginx_arguments(arguments));
    }
    // `name: what it does`. No program is called by a name with a colon and a space in it.
    let is_alone = words[1..].iter().all(|word| word.is_empty());
    if is_alone && title.windows(2).any(|pair| pair == b": ") && !title.starts_with(b"/") {
        return CommandLine::Title(duel_model::sanitize_line(&String::from_utf8_lossy(title)));
    }
    CommandLine::Arguments(words.into_iter().map(owned).collect())
}

/// Words of nginx's title. A value may hold spaces (`-g daemon off;`): it goes on to the next option.
fn nginx_arguments(title: &[u8]) -> Vec<OsString> {
    let mut arguments: Vec<Vec<u8>> = Vec::new();
    let mut value_of: Option<usize> = None;
    for word in title.split(|&byte| byte == b' ').filter(|word| !word.is_empty()) {
        let is_option = word.len() == 2 && word[0] == b'-' && word[1].is_ascii_alphabetic();
        match value_of {
            Some(at) if !is_option => match arguments.get_mut(at) {
                Some(value) => {
                    value.push(b' ');
                    value.extend(word);
                }
                None => arguments.push(word.to_vec()),
            },
            _ => {
                arguments.push(word.to_vec());
                value_of = (is_option && WITH_VALUE.contains(&word)).then_some(arguments.len());
            }
        }
    }
    arguments.into_iter().map(OsString::from_vec).collect()
}

fn owned(word: &[u8]) -> OsString {
    std::ffi::OsStr::from_bytes(word).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(list: &[&str]) -> Vec<OsString> {
        list.iter().map(OsString::from).collect()
    }

    #[test]
    fn arguments_are_what_stands_between_zero_bytes() {
        let line = b"/usr/sbin/apache2\0-k\0start\0";
        assert_eq!(command_line(line), CommandLine::Arguments(words(&["/usr/sbin/apache2", "-k", "start"])));
        assert_eq!(command_line(b"x\0\0y: z\0"), CommandLine::Arguments(words(&["x", "", "y: z"])));
        assert_eq!(command_line(b""), CommandLine::Nothing);
        assert_eq!(command_line(b"\0"), CommandLine::Nothing);
    }

    #[test]
    fn the_title_of_nginx_tells_its_arguments() {
        let title = |text: &str| command_line(format!("nginx: master process {text}\0\0\0").as_bytes());
        assert_eq!(title("/usr/sbin/nginx"), CommandLine::NginxTitle(words(&["/usr/sbin/nginx"])));
        assert_eq!(
            title("nginx -c /etc/my nginx.conf -g daemon off; user x; -q"),
            CommandLine::NginxTitle(words(&["nginx", "-c", "/etc/my nginx.conf", "-g", "daemon off; user x;", "-q"]))
        );
    }

    #[test]
    fn other_titles_tell_none() {
        for title in ["postgres: checkpointer ", "sshd: /usr/sbin/sshd -D [listener]", "nginx: worker process"] {
            assert!(matches!(command_line(title.as_bytes()), CommandLine::Title(_)), "{title}");
        }
        // A program by its path is none, whatever its argument.
        assert!(matches!(command_line(b"/bin/x: y"), CommandLine::Arguments(_)));
    }

    proptest::proptest! {
        #[test]
        fn no_command_line_makes_it_stumble(line: Vec<u8>, title in "nginx: master process [-cg a;\0]{0,24}") {
            let _ = command_line(&line);
            if let CommandLine::NginxTitle(arguments) = command_line(title.as_bytes()) {
                proptest::prop_assert!(arguments.iter().all(|argument| !argument.is_empty()));
            }
        }
    }
}
