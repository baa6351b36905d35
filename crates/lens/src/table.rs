//! A reading as text for a terminal.

use duel_model::{
    Assembly, Capabilities, Gain, HardwareUse, LensFigure, LensOp, LensReading, LensTreatment, sanitize_line,
};

/// Characters of the compiler's flags that are shown.
const LONGEST_COMPILER: usize = 160;

/// What the library is, what was found, the figures, and how to repeat it. ASCII but for foreign text; lines end with a
/// newline.
pub fn table(reading: &LensReading) -> String {
    let mut text = String::new();
    let mut line = |line: &str| {
        text.push_str(line.trim_end());
        text.push('\n');
    };
    line(&reading.library);
    if let Some(version) = &reading.identity.version {
        line(&format!("  {}", sanitize_line(version)));
    }
    if let Some(compiler) = &reading.identity.compiler {
        let shown: String = sanitize_line(compiler).chars().take(LONGEST_COMPILER).collect();
        line(&format!("  {shown}{}", if compiler.chars().count() > LONGEST_COMPILER { " ..." } else { "" }));
    }
    line("");
    line(&hardware_sentence(&reading.hardware, reading.capabilities.as_ref()));
    if let Some(capabilities) = &reading.capabilities {
        for sentence in capability_sentences(capabilities) {
            line(&sentence);
        }
    }
    // The answer above is of the server, the figures below are not: its library was loaded into a new process.
    if reading.capabilities.is_some() {
        line(
            "  (figures under \"started anew\" are of new processes with the server's environment as it is now, not of the",
        );
        line("  running server: a mask that was there when it started may be missing in them)");
    }
    line(&assembly_sentence(&reading.assembly));
    for fact in &reading.corroboration {
        line(&format!("  ({})", sanitize_line(fact)));
    }
    line("");
    for row in effect_rows(reading) {
        line(&row);
    }
    line("");
    for row in size_rows(reading) {
        line(&row);
    }
    if !reading.unavailable.is_empty() {
        line("");
        for sentence in &reading.unavailable {
            line(&format!("not available: {}", sanitize_line(sentence)));
        }
    }
    line("");
    line("To repeat it by hand:");
    for command in &reading.by_hand {
        line(&format!("  {}", duel_model::sanitize(command).replace('\n', " ")));
    }
    text
}

/// The answer to the first question.
fn hardware_sentence(hardware: &HardwareUse, capabilities: Option<&Capabilities>) -> String {
    match hardware {
        HardwareUse::Used => "AES instructions of the CPU: used".into(),
        HardwareUse::NotUsed => "AES instructions of the CPU: not used, though the CPU has them".into(),
        HardwareUse::Masked if capabilities.and_then(Capabilities::has_aes) == Some(false) => {
            "AES instructions of the CPU: not used, because a mask was there when the server started".into()
        }
        HardwareUse::Masked => "AES instructions of the CPU: not used, because the environment masks them".into(),
        HardwareUse::NotOffered => "AES instructions of the CPU: the CPU offers none".into(),
        HardwareUse::Unknown(why) => format!("AES instructions of the CPU: unknown, {}", sanitize_line(why)),
    }
}

/// What the running server's library holds, and what was not read.
fn capability_sentences(capabilities: &Capabilities) -> Vec<String> {
    let head = "CPU features in the running server: ";
    let vector = match capabilities {
        Capabilities::NotRead(why) => return vec![format!("{head}not available, {}", sanitize_line(why))],
        Capabilities::Whole(vector) | Capabilities::Masked(vector) => vector,
    };
    let processes: Vec<String> = vector.processes.iter().map(|process| process.pid.to_string()).collect();
    let read = format!("read from {} {}", counted(processes.len()), processes.join(", "));
    let mut sentences = vec![if vector.missing.is_empty() {
        format!("{head}all that the library knows ({read})")
    } else {
        let missing = sanitize_line(&vector.missing.join(", "));
        format!("{head}it lacks {missing} ({read})")
    }];
    sentences.extend(vector.not_read.iter().map(|why| format!("  not read: {}", sanitize_line(why))));
    sentences
}

fn counted(processes: usize) -> &'static str {
    if processes == 1 { "process" } else { "processes" }
}

fn assembly_sentence(assembly: &Assembly) -> String {
    match assembly {
        Assembly::Present => "assembly: built in".into(),
        Assembly::Absent => "assembly: none built in, no mask changes anything".into(),
        Assembly::Unknown(why) => format!("assembly: unknown, {}", sanitize_line(why)),
    }
}

/// A row for each operation at its largest block: the rate under each treatment, and what the masks cost.
fn effect_rows(reading: &LensReading) -> Vec<String> {
    let mut heads = vec!["per second of CPU".to_owned()];
    heads.extend(LensTreatment::ALL.iter().map(|treatment| treatment.name().to_owned()));
    heads.extend(["AES mask costs", "all masks cost"].map(str::to_owned));
    let rows = reading.effects.iter().map(|effect| {
        let mut row = vec![effect.op.name().to_owned()];
        row.extend(
            LensTreatment::ALL
                .iter()
                .map(|&treatment| figure(reading, effect.op, effect.block_bytes, treatment).map_or("-".into(), rate)),
        );
        row.extend([gain(effect.aes_mask), gain(effect.full_mask)]);
        row
    });
    aligned(std::iter::once(heads).chain(rows).collect())
}

/// A row for each bulk operation: the rate at each size, as the server runs it.
fn size_rows(reading: &LensReading) -> Vec<String> {
    let mut sizes: Vec<u32> = reading.figures.iter().filter_map(|figure| figure.block_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut heads = vec!["started anew, by block".to_owned()];
    heads.extend(sizes.iter().map(|bytes| format!("{bytes} B")));
    let rows = LensOp::ALL.into_iter().filter(|op| op.is_bulk()).filter_map(|op| {
        let cells = sizes.iter().map(|&bytes| figure(reading, op, Some(bytes), LensTreatment::AsIs).map(rate));
        let cells: Vec<Option<String>> = cells.collect();
        cells.iter().any(Option::is_some).then(|| {
            let mut row = vec![op.name().to_owned()];
            row.extend(cells.into_iter().map(|cell| cell.unwrap_or_else(|| "-".into())));
            row
        })
    });
    aligned(std::iter::once(heads).chain(rows).collect())
}

fn figure(
    reading: &LensReading,
    op: LensOp,
    block_bytes: Option<u32>,
    treatment: LensTreatment,
) -> Option<&LensFigure> {
    reading.figures.iter().find(|f| f.op == op && f.block_bytes == block_bytes && f.treatment == treatment)
}

/// Megabytes of a million bytes, as `openssl speed` counts; or operations.
fn rate(figure: &LensFigure) -> String {
    if figure.op.is_bulk() {
        let mb_per_s = figure.median_per_s / 1e6;
        if mb_per_s < 100.0 { format!("{mb_per_s:.1} MB") } else { format!("{mb_per_s:.0} MB") }
    } else {
        format!("{:.0}", figure.median_per_s)
    }
}

fn gain(gain: Option<Gain>) -> String {
    gain.map_or("-".into(), |gain| format!("{:.2}x ({:.2}-{:.2})", gain.ratio, gain.low, gain.high))
}

/// Columns as wide as their widest cell; the first to the left, figures to the right.
fn aligned(rows: Vec<Vec<String>>) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(String::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    rows.iter()
        .map(|row| {
            let cells = row.iter().zip(&widths).enumerate();
            cells
                .map(
                    |(nth, (cell, &width))| {
                        if nth == 0 { format!("{cell:<width$}") } else { format!("  {cell:>width$}") }
                    },
                )
                .collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use duel_model::{CapabilityVector, LensIdentity, LensMeans, MaskEffect, ProcessVector};

    #[test]
    fn what_the_server_holds_is_told_with_its_processes() {
        let process = |pid| ProcessVector { pid, address: 1, words: vec![0; 4] };
        let vector = |missing: &[&str]| CapabilityVector {
            offset: 1,
            whole: vec![1; 4],
            processes: vec![process(7), process(8)],
            missing: missing.iter().map(|name| (*name).to_owned()).collect(),
            not_read: vec!["process 9: it does not map the library".into()],
        };
        let masked = Capabilities::Masked(vector(&["AES-NI", "VAES"]));
        assert_eq!(
            capability_sentences(&masked),
            [
                "CPU features in the running server: it lacks AES-NI, VAES (read from processes 7, 8)",
                "  not read: process 9: it does not map the library"
            ]
        );
        assert!(hardware_sentence(&HardwareUse::Masked, Some(&masked)).contains("when the server started"));
        assert!(capability_sentences(&Capabilities::Whole(vector(&[])))[0].contains("all that the library knows"));
        let refused = Capabilities::NotRead("may not\x1b".into());
        assert_eq!(
            capability_sentences(&refused),
            ["CPU features in the running server: not available, may not\u{fffd}"]
        );
    }

    #[test]
    fn a_reading_is_shown_with_dashes_for_what_was_not_measured() {
        let figure = |treatment, median_per_s| LensFigure {
            op: LensOp::Aes256Gcm,
            block_bytes: Some(16384),
            treatment,
            median_per_s,
            spread: 0.01,
            rounds: 8,
            cpu_ns: 1,
            wall_ns: 1,
        };
        let shown = table(&LensReading {
            library: "/lib/libcrypto.so.3".into(),
            means: LensMeans::Child,
            identity: LensIdentity { version: Some("OpenSSL\x1b 3".into()), ..LensIdentity::default() },
            hardware: HardwareUse::Used,
            assembly: Assembly::Unknown("the figures vary too much".into()),
            capabilities: None,
            effects: vec![MaskEffect {
                op: LensOp::Aes256Gcm,
                block_bytes: Some(16384),
                environment: None,
                left: None,
                aes_mask: Some(Gain { ratio: 20.0, low: 18.5, high: 21.0 }),
                full_mask: None,
                noise: Some(1.02),
            }],
            figures: vec![figure(LensTreatment::AsIs, 4e9), figure(LensTreatment::AesMasked, 2e7)],
            unavailable: vec!["X25519: the library has none".into()],
            corroboration: Vec::new(),
            by_hand: vec!["openssl speed".into()],
        });
        assert_eq!(
            shown,
            "\
/lib/libcrypto.so.3
  OpenSSL\u{fffd} 3

AES instructions of the CPU: used
assembly: unknown, the figures vary too much

per second of CPU  started anew  no mask  AES masked  all masked        AES mask costs  all masks cost
AES-256-GCM             4000 MB        -     20.0 MB           -  20.00x (18.50-21.00)               -

started anew, by block  16384 B
AES-256-GCM             4000 MB

not available: X25519: the library has none

To repeat it by hand:
  openssl speed
"
        );
    }
}
