//! nginx: its configuration with every file that it includes, in which directives are set anew or left out.

use super::nginx_syntax::{Directive, directives};
use super::reading::{Found, Root, shown};
use super::{Edit, EditedFile, Setting, more_workers, online_cpus};
use crate::{NoTwin, ServerProcess};
use duel_model::sanitize_line;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of all files together, how many there may be, and how many directives: those of a machine with a thousand sites.
const MOST_BYTES: u64 = 4 << 20;
const MOST_FILES: usize = 4096;
const MOST_DIRECTIVES: usize = 50_000;
/// Bytes of the files that are changed: they are sent to the twin.
const MOST_CHANGED_BYTES: usize = 1 << 20;
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

/// How responses are cut into pieces: nginx's own defaults, which stand in the place of what is smaller.
const PIECES: [(&str, &str); 3] =
    [("sendfile_max_chunk", "2m"), ("output_buffers", "2 32k"), ("ssl_buffer_size", "16k")];

/// See [`super::edit`].
pub(super) fn edit(server: &ServerProcess, setting: Setting, stop: &AtomicBool) -> Result<Edit, NoTwin> {
    let mut configuration = Configuration::read(server, stop)?;
    let allowed = server.cpus.as_deref().map_or(1, super::count_of_cpus);
    let has_already = match setting {
        Setting::MoreWorkers => {
            let now = configuration.workers();
            configuration.set_workers(more_workers(now, allowed));
            "its configuration asks for as many workers already"
        }
        Setting::WorkersForAllCpus => {
            let now = configuration.workers();
            configuration.set_workers(now.max(online_cpus()));
            // It may have enough of them.
            let edit = configuration.edited(server)?;
            let (arguments, files, told) = (server.arguments.clone(), Vec::new(), String::new());
            return Ok(edit.unwrap_or(Edit { arguments, files, told, may_not_hold: false }));
        }
        Setting::LargePieces => {
            configuration.set(Level::Http, "sendfile", "on");
            PIECES.iter().for_each(|(name, value)| configuration.raise(name, value));
            "its configuration asks for large pieces already"
        }
        Setting::NoLimits => {
            configuration.remove_limits();
            "its configuration sets no limit"
        }
    };
    configuration.edited(server)?.ok_or_else(|| NoTwin::new(has_already))
}

/// The bytes that a directive asks for: `4k`, or `2 32k`, a number of buffers and the size of each. `None` of what is no
/// size; 0 means without end.
fn bytes_of(words: &[Vec<u8>]) -> Option<u64> {
    let size = |word: &Vec<u8>| {
        let text = std::str::from_utf8(word).ok()?;
        let digits = text.trim_end_matches(['k', 'K', 'm', 'M', 'g', 'G']);
        let shift = match &text[digits.len()..] {
            "" => 0,
            "k" | "K" => 10,
            "m" | "M" => 20,
            "g" | "G" => 30,
            _ => return None,
        };
        digits.parse::<u64>().ok()?.checked_mul(1 << shift)
    };
    let product = words.iter().try_fold(1u64, |product, word| product.checked_mul(size(word)?))?;
    Some(if product == 0 { u64::MAX } else { product })
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
    told: BTreeSet<String>,
}

/// A text of a configuration.
#[derive(Debug)]
struct Text {
    origin: Origin,
    bytes: Vec<u8>,
    /// Once for each place that it is included in.
    directives: Vec<Directive>,
    /// What stands in the place of parts, by where they begin and end.
    replaced: BTreeMap<(usize, usize), Vec<u8>>,
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
    fn read(server: &ServerProcess, stop: &AtomicBool) -> Result<Self, NoTwin> {
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
        let root = Root::of(server.files())?;
        let mut reader = Reader {
            root: &root,
            stop,
            folder: path.parent().unwrap_or(Path::new("/")).to_owned(),
            left_bytes: MOST_BYTES,
            left_directives: MOST_DIRECTIVES,
            seen: BTreeMap::new(),
            texts: Vec::new(),
        };
        reader.file(&path, &[])?;
        let (mut texts, left) = (reader.texts, reader.left_directives);
        if let Some((index, from)) = options.directives {
            let bytes = server.arguments[index].as_bytes()[from..].to_vec();
            let directives =
                directives(&bytes, &[], left).ok_or_else(|| NoTwin::new("its option -g is not understood"))?;
            let origin = Origin::Argument { index, from };
            texts.push(Text { origin, bytes, directives, replaced: BTreeMap::new() });
        }
        Ok(Self { texts, told: BTreeSet::new() })
    }

    /// How many workers it asks for.
    fn workers(&self) -> usize {
        let found = self
            .texts
            .iter()
            .flat_map(|text| &text.directives)
            .find(|directive| directive.name() == b"worker_processes" && directive.context.is_empty());
        match found.and_then(|directive| directive.words.get(1)) {
            // As many as the machine has CPUs, whichever it may use (`ngx_set_worker_processes`, `ngx_ncpu`).
            Some(value) if value == b"auto" => online_cpus(),
            Some(value) => std::str::from_utf8(value).ok().and_then(|value| value.parse().ok()).unwrap_or(1),
            None => 1,
        }
    }

    /// So many workers, on any CPU.
    fn set_workers(&mut self, count: usize) {
        self.set(Level::Main, "worker_processes", &count.to_string());
        self.replace(|directive| (directive.name() == b"worker_cpu_affinity").then_some(None));
    }

    /// Sets a directive to a value wherever it stands, and at this level if it does not stand there.
    fn set(&mut self, level: Level, name: &str, value: &str) {
        let context: &[Vec<u8>] = match level {
            Level::Main => &[],
            Level::Http => &[b"http".to_vec()],
        };
        let is_there = |directive: &Directive| directive.name() == name.as_bytes() && directive.context == context;
        let is_set = self.texts.iter().flat_map(|text| &text.directives).any(is_there);
        self.replace(|directive| {
            let now = directive.words.get(1..).unwrap_or_default().join(&b' ');
            let is_another = directive.name() == name.as_bytes() && now != value.as_bytes();
            is_another.then(|| Some(format!("{name} {value}")))
        });
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
                text.replaced.insert((place, place), format!(" {name} {value};\n").into_bytes());
                let told = format!("with {name} {value}");
                if !self.told.iter().any(|other| other.starts_with(&told)) {
                    self.told.insert(told);
                }
                return;
            }
        }
    }

    /// Sets a size to another one wherever it is smaller.
    fn raise(&mut self, name: &str, value: &str) {
        let words: Vec<Vec<u8>> = value.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        let least = bytes_of(&words).unwrap_or(u64::MAX);
        self.replace(|directive| {
            let now = directive.words.get(1..).and_then(bytes_of);
            let is_smaller = directive.name() == name.as_bytes() && now.is_some_and(|now| now < least);
            is_smaller.then(|| Some(format!("{name} {value}")))
        });
    }

    fn remove_limits(&mut self) {
        self.replace(|directive| {
            let is_limit = LIMITS.iter().any(|name| directive.name() == name.as_bytes());
            let is_rate = directive.words.get(1).is_some_and(|word| word == b"$limit_rate");
            (is_limit || directive.name() == b"set" && is_rate).then_some(None)
        });
    }

    /// Puts other directives, or none, in the place of those for which there is something to be put, where they mean what
    /// they mean to HTTP.
    fn replace(&mut self, by: impl Fn(&Directive) -> Option<Option<String>>) {
        // In other blocks (`map`, `types`, `stream`) the same word may be something else.
        const BLOCKS: [&[u8]; 5] = [b"http", b"server", b"location", b"if", b"limit_except"];
        let means_http = |directive: &&Directive| {
            !directive.has_block && directive.context.iter().all(|block| BLOCKS.contains(&block.as_slice()))
        };
        for text in &mut self.texts {
            for directive in text.directives.iter().filter(means_http) {
                let Some(new) = by(directive) else { continue };
                let was = String::from_utf8_lossy(&directive.words.join(&b' ')).into_owned();
                self.told.insert(match &new {
                    Some(new) => format!("with {new} instead of {was}"),
                    None => format!("without {was}"),
                });
                let new = new.map_or_else(Vec::new, |new| format!("{new};").into_bytes());
                text.replaced.insert((directive.span.start, directive.span.end), new);
            }
        }
    }

    /// What makes it so; `None` where nothing was changed.
    fn edited(self, server: &ServerProcess) -> Result<Option<Edit>, NoTwin> {
        const MOST_TOLD: usize = 3;
        let mut told: Vec<String> = self.told.iter().take(MOST_TOLD).map(|what| sanitize_line(what)).collect();
        let further = self.told.len().saturating_sub(MOST_TOLD);
        if further > 0 {
            told.push(format!("{further} more"));
        }
        let mut arguments = server.arguments.clone();
        let mut files = Vec::new();
        let mut left_bytes = MOST_CHANGED_BYTES;
        for text in self.texts.into_iter().filter(|text| !text.replaced.is_empty()) {
            let content = with_replaced(&text.bytes, &text.replaced);
            match text.origin {
                Origin::File { path, uid, gid, mode } => {
                    left_bytes = left_bytes
                        .checked_sub(content.len())
                        .ok_or_else(|| NoTwin::new("the files of its configuration are too large to be changed"))?;
                    if text.bytes.contains(&0) || content.contains(&0) {
                        return Err(NoTwin::new(format!("its configuration holds a zero byte: {}", shown(&path))));
                    }
                    files.push(EditedFile { path, was: text.bytes, content, uid, gid, mode });
                }
                Origin::Argument { index, from } => {
                    arguments[index] = OsString::from_vec([&arguments[index].as_bytes()[..from], &content].concat());
                }
            }
        }
        let told = told.join(", ");
        Ok((!told.is_empty()).then_some(Edit { arguments, files, told, may_not_hold: false }))
    }
}

/// A text with parts replaced, which do not overlap.
fn with_replaced(text: &[u8], replaced: &BTreeMap<(usize, usize), Vec<u8>>) -> Vec<u8> {
    let mut whole = Vec::with_capacity(text.len());
    let mut at = 0;
    for (&(start, end), new) in replaced {
        whole.extend(&text[at..start]);
        whole.extend(new);
        at = end;
    }
    whole.extend(&text[at..]);
    whole
}

/// What nginx's arguments say of its configuration.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    file: Option<PathBuf>,
    prefix: Option<PathBuf>,
    /// The argument that holds directives, and from which byte on. Of several the last one counts.
    directives: Option<(usize, usize)>,
}

impl Options {
    /// As `ngx_get_options` reads them: several letters may stand together, and a value may be the rest of its argument or
    /// the next one.
    fn of(arguments: &[OsString]) -> Self {
        let mut options = Self::default();
        let mut at = 0;
        while let Some(argument) = arguments.get(at) {
            let bytes = argument.as_bytes();
            let letters = bytes.strip_prefix(b"-").unwrap_or_default();
            let with_value = letters.iter().position(|letter| b"cpgse".contains(letter));
            if let Some(place) = with_value {
                let rest = place + 2;
                let (index, from) = if bytes.len() > rest { (at, rest) } else { (at + 1, 0) };
                at = index;
                if let Some(value) = arguments.get(index).map(|value| &value.as_bytes()[from..]) {
                    let path = PathBuf::from(OsStr::from_bytes(value));
                    match letters[place] {
                        b'c' => options.file = Some(path),
                        b'p' => options.prefix = Some(path),
                        b'g' => options.directives = Some((index, from)),
                        _ => {}
                    }
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

/// A file that was found before: which text it is, and in which blocks it was found, the outermost first.
struct Seen {
    index: usize,
    contexts: BTreeSet<Vec<Vec<u8>>>,
}

/// Reads a configuration with what it includes.
struct Reader<'a> {
    root: &'a Root,
    stop: &'a AtomicBool,
    /// What included files are relative to: the folder of the main one.
    folder: PathBuf,
    left_bytes: u64,
    left_directives: usize,
    /// The texts of files, by what tells these apart, and by the blocks that they were found in.
    seen: BTreeMap<(u64, u64), Seen>,
    texts: Vec<Text>,
}

impl Reader<'_> {
    fn file(&mut self, path: &Path, context: &[Vec<u8>]) -> Result<(), NoTwin> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(NoTwin::new("interrupted"));
        }
        let Found { bytes, uid, gid, mode, id } = self.root.read(path, self.left_bytes)?;
        self.left_bytes -= bytes.len() as u64;
        let directives = directives(&bytes, context, self.left_directives)
            .ok_or_else(|| NoTwin::new(format!("its configuration is not understood: {}", shown(path))))?;
        self.left_directives -= directives.len();
        // Each file is changed once, wherever it is included; in the same blocks again it is what it was there.
        let index = match self.seen.get_mut(&id) {
            Some(seen) => {
                if !seen.contexts.insert(context.to_vec()) {
                    return Ok(());
                }
                seen.index
            }
            None => {
                let index = self.texts.len();
                let origin = Origin::File { path: path.to_owned(), uid, gid, mode };
                let (directives, replaced) = Default::default();
                self.texts.push(Text { origin, bytes, directives, replaced });
                self.seen.insert(id, Seen { index, contexts: [context.to_vec()].into() });
                index
            }
        };
        if self.seen.len() > MOST_FILES {
            return Err(NoTwin::new(format!("its configuration has more than {MOST_FILES} files")));
        }
        for directive in directives.iter().filter(|directive| directive.name() == b"include" && !directive.has_block) {
            let Some(pattern) = directive.words.get(1) else { continue };
            for path in self.included(&self.folder.join(OsStr::from_bytes(pattern)))? {
                self.file(&path, &directive.context)?;
            }
        }
        self.texts[index].directives.extend(directives);
        Ok(())
    }

    /// The files that a pattern names.
    fn included(&self, pattern: &Path) -> Result<Vec<PathBuf>, NoTwin> {
        let has = |part: &OsStr, any: &[u8]| part.as_bytes().iter().any(|byte| any.contains(byte));
        let not_understood =
            || NoTwin::new(format!("what its configuration includes is not understood: {}", shown(pattern)));
        let (Some(folder), Some(name)) = (pattern.parent(), pattern.file_name()) else { return Err(not_understood()) };
        // Sets of characters are written otherwise here and there.
        if has(folder.as_os_str(), b"*?[") || has(name, b"[\\") {
            return Err(not_understood());
        }
        if !has(name, b"*?") {
            return Ok(vec![pattern.to_owned()]);
        }
        let name = name.to_str().and_then(|name| glob::Pattern::new(name).ok()).ok_or_else(not_understood)?;
        // As glob(3): a name that begins with a dot is meant by a dot only.
        let options = glob::MatchOptions { require_literal_leading_dot: true, ..glob::MatchOptions::new() };
        let names = self.root.names(folder)?.into_iter();
        Ok(names
            .filter(|found| name.matches_with(&found.to_string_lossy(), options))
            .map(|found| folder.join(found))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A configuration of one file.
    fn configuration(text: &str) -> Configuration {
        let origin = Origin::File { path: "/etc/nginx.conf".into(), uid: 1, gid: 2, mode: 0o640 };
        let directives = directives(text.as_bytes(), &[], 100).unwrap();
        let texts = vec![Text { origin, bytes: text.into(), directives, replaced: BTreeMap::new() }];
        Configuration { texts, told: BTreeSet::new() }
    }

    /// The text that comes of it, and what is told.
    fn edited(text: &str, change: impl FnOnce(&mut Configuration)) -> Option<(String, String)> {
        let mut configuration = configuration(text);
        change(&mut configuration);
        let server = ServerProcess::read(std::process::id()).unwrap();
        let edit = configuration.edited(&server).unwrap()?;
        assert_eq!(edit.files[0].was, text.as_bytes());
        assert_eq!((edit.files[0].uid, edit.files[0].gid, edit.files[0].mode), (1, 2, 0o640));
        Some((String::from_utf8(edit.files[0].content.clone()).unwrap(), edit.told))
    }

    #[test]
    fn a_directive_is_set_wherever_it_stands() {
        let workers = |text: &str| edited(text, |it| it.set_workers(4));
        let (text, told) = workers("worker_processes 1; # one\nevents {}\n").unwrap();
        assert_eq!(text, "worker_processes 4; # one\nevents {}\n");
        assert_eq!(told, "with worker_processes 4 instead of worker_processes 1");
        assert_eq!(workers("events {}").unwrap().0, " worker_processes 4;\nevents {}");
        assert_eq!(workers("worker_processes 4;"), None);
        assert_eq!(workers("worker_cpu_affinity 01;").unwrap().0, " worker_processes 4;\n");

        let sendfile = |text: &str| edited(text, |it| it.set(Level::Http, "sendfile", "on"));
        let (text, told) = sendfile("http { server { sendfile off; } map $a $b { sendfile off; } }").unwrap();
        assert_eq!(text, "http { sendfile on;\n server { sendfile on; } map $a $b { sendfile off; } }");
        assert_eq!(told, "with sendfile on instead of sendfile off");
        assert_eq!(sendfile("http { sendfile on; server { sendfile on; } }"), None);
    }

    #[test]
    fn limits_are_left_out() {
        let text = "http { limit_req_zone $a zone=b:1m rate=1r/s; server { limit_req zone=b; set $limit_rate 5; set $x 5; \
                    if ($x) { limit_rate 1k; } } }";
        let (text, told) = edited(text, Configuration::remove_limits).unwrap();
        assert_eq!(text, "http { limit_req_zone $a zone=b:1m rate=1r/s; server {   set $x 5; if ($x) {  } } }");
        assert_eq!(told, "without limit_rate 1k, without limit_req zone=b, without set $limit_rate 5");
        assert_eq!(edited("http { }", Configuration::remove_limits), None);
    }

    #[test]
    fn only_smaller_pieces_are_made_larger() {
        let raised = |text: &str, name, value| edited(text, |it| it.raise(name, value)).map(|(text, _)| text);
        assert_eq!(raised("output_buffers 1 1k;", "output_buffers", "2 32k").unwrap(), "output_buffers 2 32k;");
        for (text, name, value) in [
            ("output_buffers 4 1m;", "output_buffers", "2 32k"),
            ("sendfile_max_chunk 0;", "sendfile_max_chunk", "2m"),
            ("ssl_buffer_size 64K;", "ssl_buffer_size", "16k"),
            ("ssl_buffer_size $x;", "ssl_buffer_size", "16k"),
            ("ssl_buffer_size 99999999999999999999g;", "ssl_buffer_size", "16k"),
        ] {
            assert_eq!(raised(text, name, value), None, "{text}");
        }
    }

    #[test]
    fn as_many_workers_as_it_has() {
        for (text, workers) in [("", 1), ("worker_processes 3;", 3), ("worker_processes x;", 1), ("http { }", 1)] {
            assert_eq!(configuration(text).workers(), workers, "{text}");
        }
        assert_eq!(configuration("worker_processes auto;").workers(), online_cpus());
    }

    #[test]
    fn a_zero_byte_cannot_be_sent() {
        let mut configuration = configuration("worker_processes 1; # \0\n");
        configuration.set_workers(4);
        let server = ServerProcess::read(std::process::id()).unwrap();
        assert!(configuration.edited(&server).unwrap_err().to_string().contains("zero byte"));
    }

    #[test]
    fn options_are_read_as_nginx_reads_them() {
        let of = |words: &[&str]| Options::of(&words.iter().map(OsString::from).collect::<Vec<_>>());
        let expected = Options { file: Some("x".into()), prefix: Some("/p".into()), directives: Some((4, 0)) };
        assert_eq!(of(&["-c", "x", "-p/p", "-g", "daemon off;", "-q"]), expected);
        assert_eq!(of(&["-gworker_processes 1;"]).directives, Some((0, 2)));
        assert_eq!(of(&["-tqc", "x"]).file, Some("x".into()));
        assert_eq!(of(&["-qcx"]).file, Some("x".into()));
        assert_eq!(of(&["-g", "a;", "-g", "b;"]).directives, Some((3, 0)));
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
