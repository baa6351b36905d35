//! nginx: its configuration with every file that it includes, in which directives are set anew or left out.

use super::nginx_syntax::{Directive, directives};
use super::reading::{Found, Root, shown};
use super::{Edit, EditedFile, Setting, more_workers};
use crate::{NoTwin, ServerProcess};
use duel_model::sanitize_line;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Bytes of all files together, and how many there may be: those of a machine with thousands of sites.
const MOST_BYTES: u64 = 8 << 20;
const MOST_FILES: usize = 4096;
/// Bytes of the program that are searched for what it was built with.
const MOST_PROGRAM_BYTES: u64 = 256 << 20;

/// Where nginx looks when it was built with nothing else (`auto/options`).
const BUILT_IN_PREFIX: &str = "/usr/local/nginx";

/// Directives that limit what a client gets, and how often.
const LIMITS: [&str; 8] = [
    "limit_rate",
    "limit_rate_after",
    "limit_req",
    "limit_conn",
    "proxy_limit_rate",
    "fastcgi_limit_rate",
    "scgi_limit_rate",
    "uwsgi_limit_rate",
];

/// How responses are cut into pieces, and nginx's own defaults for it, except that it has `sendfile` off.
const PIECES: [(&str, &str); 4] =
    [("sendfile", "on"), ("sendfile_max_chunk", "2m"), ("output_buffers", "2 32k"), ("ssl_buffer_size", "16k")];

/// See [`super::edit`].
pub(super) fn edit(server: &ServerProcess, setting: Setting) -> Result<Edit, NoTwin> {
    let mut configuration = Configuration::read(server)?;
    match setting {
        Setting::MoreWorkers => {
            let cpus = server.cpus.as_deref().map_or(1, count_of_cpus);
            let now = configuration.workers().unwrap_or(cpus);
            configuration.set(Level::Main, "worker_processes", &more_workers(now, cpus).to_string());
        }
        Setting::LargePieces => {
            configuration.set(Level::Http, PIECES[0].0, PIECES[0].1);
            PIECES[1..].iter().for_each(|(name, value)| configuration.reset(name, value));
        }
        Setting::NoLimits => configuration.remove_limits(),
    }
    let asked = match setting {
        Setting::MoreWorkers => "for as many workers",
        Setting::LargePieces => "for large pieces",
        Setting::NoLimits => "for no limit",
    };
    configuration.edited(server).ok_or_else(|| NoTwin::new(format!("its configuration asks {asked} already")))
}

/// How many CPUs a list of the kernel holds, such as `0-3,8`.
fn count_of_cpus(list: &str) -> usize {
    let count = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        Some(last.saturating_sub(first).saturating_add(1).min(8192))
    };
    list.split(',').filter_map(count).sum::<usize>().max(1)
}

/// Where a directive is inserted that is nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Main,
    Http,
}

/// All texts of a configuration, and what becomes of them.
#[derive(Debug, Default)]
struct Configuration {
    texts: Vec<Text>,
    /// What was changed, in words.
    told: Vec<String>,
}

/// A text of a configuration.
#[derive(Debug)]
struct Text {
    origin: Origin,
    bytes: Vec<u8>,
    directives: Vec<Directive>,
    /// What stands in the place of these parts.
    replaced: Vec<(Range<usize>, Vec<u8>)>,
}

/// Where a text is from.
#[derive(Debug)]
enum Origin {
    File {
        path: PathBuf,
        uid: u32,
        gid: u32,
        mode: u32,
    },
    /// An argument, from this byte on.
    Argument {
        index: usize,
        from: usize,
    },
}

impl Configuration {
    fn read(server: &ServerProcess) -> Result<Self, NoTwin> {
        let options = Options::of(&server.arguments);
        let program = server.files().path("exe");
        let prefix = options.prefix.map_or_else(
            || built_with(&program, "--prefix=").unwrap_or_else(|| BUILT_IN_PREFIX.into()),
            |prefix| server.folder.join(prefix),
        );
        let path = match options.file {
            Some(file) => prefix.join(file),
            None => prefix.join(built_with(&program, "--conf-path=").unwrap_or_else(|| "conf/nginx.conf".into())),
        };
        let root = Root::of(&server.files())?;
        let mut reader = Reader {
            root: &root,
            folder: path.parent().unwrap_or(Path::new("/")).to_owned(),
            left_bytes: MOST_BYTES,
            seen: BTreeSet::new(),
            texts: Vec::new(),
        };
        reader.file(&path, &[])?;
        let mut texts = reader.texts;
        for (index, from) in options.directives {
            let bytes = server.arguments[index].as_bytes()[from..].to_vec();
            // The last one may be without its semicolon: nginx adds one.
            let bytes = if bytes.trim_ascii_end().ends_with(b";") { bytes } else { [&bytes[..], b";"].concat() };
            let directives = directives(&bytes, &[]).ok_or_else(|| NoTwin::new("its option -g is not understood"))?;
            texts.push(Text { origin: Origin::Argument { index, from }, bytes, directives, replaced: Vec::new() });
        }
        Ok(Self { texts, told: Vec::new() })
    }

    /// How many workers it asks for; `None`: one for each CPU.
    fn workers(&self) -> Option<usize> {
        let found = self
            .texts
            .iter()
            .flat_map(|text| &text.directives)
            .find(|directive| directive.name() == b"worker_processes" && directive.context.is_empty());
        match found.and_then(|directive| directive.words.get(1)) {
            Some(value) if value == b"auto" => None,
            Some(value) => std::str::from_utf8(value).ok().and_then(|value| value.parse().ok()),
            None => Some(1),
        }
    }

    /// Sets a directive to a value wherever it stands, and at this level if it does not stand there.
    fn set(&mut self, level: Level, name: &str, value: &str) {
        let context: &[Vec<u8>] = match level {
            Level::Main => &[],
            Level::Http => &[b"http".to_vec()],
        };
        let is_set = self
            .texts
            .iter()
            .flat_map(|text| &text.directives)
            .any(|directive| directive.name() == name.as_bytes() && directive.context == context);
        self.reset(name, value);
        if is_set {
            return;
        }
        for text in &mut self.texts {
            let place = match level {
                // The first text is the main file.
                Level::Main => Some(0),
                Level::Http => text
                    .directives
                    .iter()
                    .find(|directive| {
                        directive.name() == b"http" && directive.context.is_empty() && directive.has_block
                    })
                    .map(|directive| directive.span.end),
            };
            if let Some(place) = place {
                text.replaced.push((place..place, format!(" {name} {value};\n").into_bytes()));
                self.told.push(format!("with {name} {value}"));
                return;
            }
        }
    }

    /// Sets a directive to a value wherever it stands.
    fn reset(&mut self, name: &str, value: &str) {
        self.replace(Some(&format!("{name} {value}")), |directive| {
            let now = directive.words.get(1..).unwrap_or_default().join(&b' ');
            directive.name() == name.as_bytes() && now != value.as_bytes()
        });
    }

    fn remove_limits(&mut self) {
        self.replace(None, |directive| {
            let is_limit = LIMITS.iter().any(|name| directive.name() == name.as_bytes());
            let sets_limit =
                directive.name() == b"set" && directive.words.get(1).is_some_and(|word| word == b"$limit_rate");
            is_limit || sets_limit
        });
    }

    /// Puts `by` in the place of these directives, where they mean what they mean to HTTP.
    fn replace(&mut self, by: Option<&str>, is_meant: impl Fn(&Directive) -> bool) {
        // In other blocks (`map`, `types`, `stream`) the same word may be something else.
        const BLOCKS: [&[u8]; 5] = [b"http", b"server", b"location", b"if", b"limit_except"];
        let means_http = |directive: &&Directive| {
            !directive.has_block && directive.context.iter().all(|block| BLOCKS.contains(&block.as_slice()))
        };
        for text in &mut self.texts {
            for directive in text.directives.iter().filter(means_http).filter(|directive| is_meant(directive)) {
                let was = String::from_utf8_lossy(&directive.words.join(&b' ')).into_owned();
                let told = by.map_or_else(|| format!("without {was}"), |by| format!("with {by} instead of {was}"));
                if !self.told.contains(&told) {
                    self.told.push(told);
                }
                let new = by.map_or_else(Vec::new, |by| format!("{by};").into_bytes());
                text.replaced.push((directive.span.clone(), new));
            }
        }
    }

    /// What makes it so; `None` where nothing was changed.
    fn edited(self, server: &ServerProcess) -> Option<Edit> {
        const MOST_TOLD: usize = 3;
        let mut told: Vec<String> = self.told.iter().take(MOST_TOLD).map(|what| sanitize_line(what)).collect();
        let further = self.told.len().saturating_sub(MOST_TOLD);
        if further > 0 {
            told.push(format!("{further} more"));
        }
        let mut arguments = server.arguments.clone();
        let mut files = Vec::new();
        for mut text in self.texts.into_iter().filter(|text| !text.replaced.is_empty()) {
            // From the end, so that places stay what they are; what is inserted before a part that is replaced, behind that.
            text.replaced.sort_by_key(|(range, _)| std::cmp::Reverse((range.start, range.end)));
            for (range, new) in text.replaced {
                text.bytes.splice(range, new);
            }
            match text.origin {
                Origin::File { path, uid, gid, mode } => {
                    files.push(EditedFile { path, content: text.bytes, uid, gid, mode });
                }
                Origin::Argument { index, from } => {
                    let new = [&arguments[index].as_bytes()[..from], &text.bytes].concat();
                    arguments[index] = OsString::from_vec(new);
                }
            }
        }
        (!told.is_empty()).then(|| Edit { arguments, files, told: told.join(", ") })
    }
}

/// What nginx's arguments say of its configuration.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    file: Option<PathBuf>,
    prefix: Option<PathBuf>,
    /// Arguments that hold directives, and from which byte on.
    directives: Vec<(usize, usize)>,
}

impl Options {
    /// As `ngx_get_options` reads them: a value may be part of its option or the next argument.
    fn of(arguments: &[OsString]) -> Self {
        let mut options = Self::default();
        let mut at = 0;
        while let Some(argument) = arguments.get(at) {
            let bytes = argument.as_bytes();
            let letter = bytes.strip_prefix(b"-").and_then(|rest| rest.first()).copied();
            if let Some(letter @ (b'c' | b'p' | b'g' | b'e' | b's')) = letter {
                let (index, from) = if bytes.len() > 2 { (at, 2) } else { (at + 1, 0) };
                at = index;
                let value = arguments.get(index).map(|value| &value.as_bytes()[from..]);
                let path = || value.map(|value| PathBuf::from(OsStr::from_bytes(value)));
                match letter {
                    b'c' => options.file = path(),
                    b'p' => options.prefix = path(),
                    b'g' if value.is_some() => options.directives.push((index, from)),
                    _ => {}
                }
            }
            at += 1;
        }
        options
    }
}

/// What nginx's program was built with: it holds the arguments of its `configure`, for `nginx -V`.
fn built_with(program: &Path, option: &str) -> Option<PathBuf> {
    let mut bytes = Vec::new();
    File::open(program).ok()?.take(MOST_PROGRAM_BYTES).read_to_end(&mut bytes).ok()?;
    value_in(&bytes, option)
}

fn value_in(bytes: &[u8], option: &str) -> Option<PathBuf> {
    let wanted = format!(" {option}/");
    let start = bytes.windows(wanted.len()).position(|part| part == wanted.as_bytes())? + wanted.len() - 1;
    let length = bytes[start..].iter().position(|byte| matches!(byte, 0 | b' ' | b'\'' | b'"'))?;
    Some(PathBuf::from(OsStr::from_bytes(&bytes[start..start + length])))
}

/// Reads a configuration with what it includes.
struct Reader<'a> {
    root: &'a Root,
    /// What included files are relative to: the folder of the main one.
    folder: PathBuf,
    left_bytes: u64,
    seen: BTreeSet<PathBuf>,
    texts: Vec<Text>,
}

impl Reader<'_> {
    fn file(&mut self, path: &Path, context: &[Vec<u8>]) -> Result<(), NoTwin> {
        // A file that is included twice is edited once, and is the same in either place.
        if !self.seen.insert(path.to_owned()) {
            return Ok(());
        }
        if self.seen.len() > MOST_FILES {
            return Err(NoTwin::new(format!("its configuration has more than {MOST_FILES} files")));
        }
        let Found { bytes, uid, gid, mode } = self.root.read(path, self.left_bytes)?;
        self.left_bytes -= bytes.len() as u64;
        let directives = directives(&bytes, context)
            .ok_or_else(|| NoTwin::new(format!("its configuration is not understood: {}", shown(path))))?;
        let origin = Origin::File { path: path.to_owned(), uid, gid, mode };
        self.texts.push(Text { origin, bytes, directives: directives.clone(), replaced: Vec::new() });
        for directive in directives.iter().filter(|directive| directive.name() == b"include" && !directive.has_block) {
            let Some(pattern) = directive.words.get(1) else { continue };
            for path in self.included(&self.folder.join(OsStr::from_bytes(pattern)))? {
                self.file(&path, &directive.context)?;
            }
        }
        Ok(())
    }

    /// The files that a pattern names.
    fn included(&self, pattern: &Path) -> Result<Vec<PathBuf>, NoTwin> {
        let is_plain = |part: &OsStr| !part.as_bytes().iter().any(|byte| b"*?[".contains(byte));
        let not_understood =
            || NoTwin::new(format!("what its configuration includes is not understood: {}", shown(pattern)));
        let (Some(folder), Some(name)) = (pattern.parent(), pattern.file_name()) else { return Err(not_understood()) };
        if !is_plain(folder.as_os_str()) {
            return Err(not_understood());
        }
        if is_plain(name) {
            return Ok(vec![pattern.to_owned()]);
        }
        let name = name.to_str().and_then(|name| glob::Pattern::new(name).ok()).ok_or_else(not_understood)?;
        // As glob(3): a name that begins with a dot is meant by a dot only.
        let options = glob::MatchOptions { require_literal_leading_dot: true, ..glob::MatchOptions::new() };
        let names = self.root.names(folder).into_iter();
        Ok(names
            .filter(|found| found.to_str().is_some_and(|found| name.matches_with(found, options)))
            .map(|found| folder.join(found))
            .collect())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    /// A configuration of one file.
    fn configuration(text: &str) -> Configuration {
        let origin = Origin::File { path: "/etc/nginx.conf".into(), uid: 1, gid: 2, mode: 0o640 };
        let directives = directives(text.as_bytes(), &[]).unwrap();
        let texts = vec![Text { origin, bytes: text.into(), directives, replaced: Vec::new() }];
        Configuration { texts, told: Vec::new() }
    }

    /// The text that comes of it, and what is told.
    fn edited(text: &str, change: impl FnOnce(&mut Configuration)) -> Option<(String, String)> {
        let mut configuration = configuration(text);
        change(&mut configuration);
        let server = ServerProcess::read(std::process::id()).unwrap();
        let edit = configuration.edited(&server)?;
        assert_eq!((edit.files[0].uid, edit.files[0].gid, edit.files[0].mode), (1, 2, 0o640));
        Some((String::from_utf8(edit.files[0].content.clone()).unwrap(), edit.told))
    }

    #[test]
    fn a_directive_is_set_wherever_it_stands() {
        let workers = |text: &str| edited(text, |it| it.set(Level::Main, "worker_processes", "4"));
        let (text, told) = workers("worker_processes 1; # one\nevents {}\n").unwrap();
        assert_eq!(text, "worker_processes 4; # one\nevents {}\n");
        assert_eq!(told, "with worker_processes 4 instead of worker_processes 1");
        assert_eq!(workers("events {}").unwrap().0, " worker_processes 4;\nevents {}");
        assert_eq!(workers("worker_processes 4;"), None);

        let sendfile = |text: &str| edited(text, |it| it.set(Level::Http, "sendfile", "on"));
        let (text, _) = sendfile("http { server { sendfile off; } map $a $b { sendfile off; } }").unwrap();
        assert_eq!(text, "http { sendfile on;\n server { sendfile on; } map $a $b { sendfile off; } }");
        assert_eq!(sendfile("http { sendfile on; server { sendfile on; } }"), None);
    }

    #[test]
    fn limits_are_left_out() {
        let text = "http { limit_req_zone $a zone=b:1m rate=1r/s; server { limit_req zone=b; set $limit_rate 5; set $x 5; \
                    if ($x) { limit_rate 1k; } } }";
        let (text, told) = edited(text, Configuration::remove_limits).unwrap();
        assert_eq!(text, "http { limit_req_zone $a zone=b:1m rate=1r/s; server {   set $x 5; if ($x) {  } } }");
        assert_eq!(told, "without limit_req zone=b, without set $limit_rate 5, without limit_rate 1k");
        assert_eq!(edited("http { }", Configuration::remove_limits), None);
    }

    #[test]
    fn as_many_workers_as_it_has() {
        for (text, workers) in
            [("", Some(1)), ("worker_processes 3;", Some(3)), ("worker_processes auto;", None), ("http { }", Some(1))]
        {
            assert_eq!(configuration(text).workers(), workers, "{text}");
        }
        assert_eq!(["0-3,8", "0", "7-2", "x"].map(count_of_cpus), [5, 1, 1, 1]);
    }

    #[test]
    fn options_are_read_as_nginx_reads_them() {
        let of = |words: &[&str]| Options::of(&words.iter().map(OsString::from).collect::<Vec<_>>());
        let expected = Options { file: Some("x".into()), prefix: Some("/p".into()), directives: vec![(4, 0)] };
        assert_eq!(of(&["-c", "x", "-p/p", "-g", "daemon off;", "-q"]), expected);
        assert_eq!(of(&["-gworker_processes 1;"]).directives, [(0, 2)]);
        assert_eq!(of(&["-c"]), Options::default());
    }

    #[test]
    fn what_it_was_built_with_is_in_the_program() {
        let bytes =
            b"\0configure arguments: --with-x='--conf-path=no' --prefix=/usr/share/nginx --conf-path=/etc/n.conf\0";
        assert_eq!(value_in(bytes, "--conf-path="), Some("/etc/n.conf".into()));
        assert_eq!(value_in(bytes, "--prefix="), Some("/usr/share/nginx".into()));
        assert_eq!(value_in(bytes, "--error-log-path="), None);
    }
}
