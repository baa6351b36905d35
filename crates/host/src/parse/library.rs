//! Libraries that the server really maps, with their versions and how they were built.

use super::lines::{base, number};
use super::sheet::{Sheet, complaint};

/// `process.library.NAME.path` for all that is mapped; version, build and assembly for those that matter.
pub(super) fn facts(sheet: &mut Sheet<'_>) {
    if sheet.text("server").is_none_or(|_| sheet.value("process.pid").is_none()) {
        return;
    }
    for line in sheet.lines("maps") {
        // RANGE PATH on Linux; a path at the end of a line on FreeBSD.
        let Some(at) = line.find(" /") else { continue };
        let path = line[at + 1..].trim();
        let file = path.strip_suffix(" (deleted)").unwrap_or(path);
        if base(file).contains(".so") {
            let name = stem(file);
            sheet.set(format!("process.library.{name}.path"), file);
            if file != path {
                sheet.set(
                    format!("process.library.{name}.replaced"),
                    "yes: the file on disk is another one since the server started",
                );
            }
        }
    }
    match sheet.text("maps").and_then(complaint) {
        Some(why) => sheet.unavailable("process.libraries", why),
        None => sheet.promised("maps", &[]),
    }
    if sheet.text("maps").is_none() {
        sheet.unavailable("process.libraries", "the host did not answer this");
    }
    for (path, text) in sheet.sections("library ") {
        let key = |what: &str| format!("process.library.{}.{what}", stem(path));
        if let Some(why) = complaint(text) {
            sheet.unavailable(key("version"), why);
            continue;
        }
        if let Some(bytes) = text.lines().find_map(|line| number(line.strip_prefix("bytes ")?, 0)) {
            sheet.set(key("bytes"), bytes.to_string());
        }
        build(sheet, text, &format!("process.library.{}.", stem(path)));
        sheet.unavailable(key("version"), "the file holds no version that is known");
    }
    // What is linked into the program itself.
    if let Some(text) = sheet.text("process") {
        build(sheet, text, "process.program.");
        if sheet.value("process.exe").is_some() {
            sheet.unavailable("process.program.version", "the program holds no version that is known");
        }
    }
}

/// Facts from lines `string TEXT`.
fn build(sheet: &mut Sheet<'_>, text: &str, prefix: &str) {
    let mut assembly = Vec::new();
    let mut fallback = None;
    for string in text.lines().filter_map(|line| line.strip_prefix("string ")) {
        let string = string.trim();
        if let Some((what, _)) = string.split_once("CRYPTOGAMS by") {
            assembly.push(what.trim_matches([' ', ',']).to_owned());
        } else if let Some(flags) = string.strip_prefix("compiler: ") {
            sheet.set(format!("{prefix}compiler"), flags);
        } else if let Some(platform) = string.strip_prefix("platform: ") {
            sheet.set(format!("{prefix}platform"), platform);
        } else if let Some(built) = string.strip_prefix("built on: ") {
            sheet.set(format!("{prefix}built"), built);
        } else if let Some(arguments) = string.strip_prefix("configure arguments: ") {
            sheet.set(format!("{prefix}configured"), arguments);
        } else if let Some(gcc) = string.strip_prefix("GCC: ") {
            sheet.set(format!("{prefix}gcc"), gcc);
        } else if let Some(go) = string.strip_prefix("Go cmd/compile ") {
            sheet.set(format!("{prefix}go"), go);
        } else if let Some(version) = string.split_once("flate ").and_then(|(_, rest)| rest.strip_suffix(" Copyright"))
        {
            sheet.set(format!("{prefix}version"), format!("zlib {version}"));
        } else if string.starts_with(|c: char| c.is_ascii_digit()) || string == "BoringSSL" {
            // A number alone says the least, so anything else goes before it.
            fallback.get_or_insert(string);
        } else {
            sheet.set(format!("{prefix}version"), string);
        }
    }
    if let Some(fallback) = fallback {
        sheet.set(format!("{prefix}version"), fallback);
    }
    assembly.sort();
    assembly.dedup();
    if !assembly.is_empty() {
        sheet.set(format!("{prefix}assembly"), assembly.join("; "));
    } else if prefix.contains(".libcrypto.") && sheet.value(&format!("{prefix}version")).is_some() {
        sheet.set(format!("{prefix}assembly"), "none: no text of OpenSSL's assembly modules is in the file");
    }
}

/// `libcrypto` of `/usr/lib/libcrypto.so.3`, `libc` of `libc-2.31.so`.
fn stem(path: &str) -> &str {
    let file = base(path);
    let stem = file.split(".so").next().unwrap_or(file);
    match stem.split_once('-') {
        Some((name, version)) if version.starts_with(|c: char| c.is_ascii_digit()) => name,
        _ => stem,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests_support::facts_of;
    use super::stem;

    #[test]
    fn stems() {
        assert_eq!(
            [
                stem("/lib/libcrypto.so.3"),
                stem("/lib/libc-2.31.so"),
                stem("/lib/libpcre2-8.so.0"),
                stem("/lib/ld-linux-x86-64.so.2")
            ],
            ["libcrypto", "libc", "libpcre2", "ld-linux-x86-64"]
        );
    }

    #[test]
    fn a_library_tells_how_it_was_built() {
        let facts = facts_of(&[
            ("server", "roots 10\nmembers 10"),
            (
                "process",
                "pid 10\nexe /usr/sbin/nginx\nstring nginx/1.22.1\nstring configure arguments: --with-cc-opt='-O2'\n",
            ),
            (
                "maps",
                "7f00-7f10 /usr/lib/libcrypto.so.3\n7f20-7f30 /usr/lib/libz.so.1.2.13 (deleted)\n55-56 /usr/sbin/nginx\n",
            ),
            (
                "library /usr/lib/libcrypto.so.3",
                "deleted no\nbytes 4709400\nstring AES for Intel AES-NI, CRYPTOGAMS by\nstring OpenSSL 3.0.17 1 Jul 2025\nstring compiler: gcc -fPIC -O2\n",
            ),
            ("library /usr/lib/libz.so.1.2.13", "deleted (deleted)\nstring deflate 1.2.13 Copyright\n"),
            ("library /usr/lib/libssl.so.3", "deleted no\nduel: the file cannot be read\n"),
        ]);
        let value = |key: &str| facts.text(&format!("process.library.{key}"));
        assert_eq!(
            (value("libcrypto.path"), value("libcrypto.version")),
            (Some("/usr/lib/libcrypto.so.3"), Some("OpenSSL 3.0.17 1 Jul 2025"))
        );
        assert_eq!(
            (value("libcrypto.compiler"), value("libcrypto.assembly")),
            (Some("gcc -fPIC -O2"), Some("AES for Intel AES-NI"))
        );
        assert_eq!(value("libz.version"), Some("zlib 1.2.13"));
        assert!(value("libz.replaced").unwrap().starts_with("yes") && value("libcrypto.replaced").is_none());
        assert_eq!(value("libssl.version"), None);
        assert_eq!(facts.text("process.program.version"), Some("nginx/1.22.1"));
    }
}
