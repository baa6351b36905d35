//! Runs as other programs read them.

use crate::sample::{self, pair, server};
use duel_model::*;
use duel_report::{ExportError, Format, export};

fn text(run: &Run, verdict: &Verdict, format: Format, target: Option<&str>) -> String {
    String::from_utf8(export(run, verdict, format, target).unwrap()).unwrap()
}

/// Fields of a line of CSV, RFC 4180.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' if quoted && rest.peek() == Some(&'"') => field.push(rest.next().unwrap()),
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(std::mem::take(&mut field)),
            c => field.push(c),
        }
    }
    fields.push(field);
    fields
}

#[test]
fn a_row_for_each_slot_and_a_field_for_each_column() {
    let (run, verdict) = sample::slower();
    let csv = text(&run, &verdict, Format::Csv, None);
    let lines: Vec<&str> = csv.split_terminator("\r\n").collect();
    let heads = fields(lines[0]);
    assert_eq!(lines.len(), run.slots.len() + 1);
    assert!(lines.iter().all(|line| fields(line).len() == heads.len()));
    let names: std::collections::BTreeSet<_> = heads.iter().collect();
    assert_eq!(names.len(), heads.len(), "no name twice: {heads:?}");
    let cell = |row: usize, name: &str| {
        let column = heads.iter().position(|head| head == name).unwrap_or_else(|| panic!("no column {name}"));
        fields(lines[row + 1])[column].clone()
    };
    for (i, slot) in run.slots.iter().enumerate() {
        assert_eq!(cell(i, "target"), run.plan.targets[slot.target].name);
        assert_eq!(cell(i, "ok_ops").parse::<u64>().unwrap(), slot.tally.ok);
        assert_eq!(cell(i, "failed_ops").parse::<u64>().unwrap(), slot.tally.failed_total());
        let p99_ns = slot.tally.response.quantile_ns(0.99).unwrap() as f64;
        assert_eq!((cell(i, "response_p99_ms").parse::<f64>().unwrap() * 1e6).round(), p99_ns);
        assert_eq!(cell(i, "dns_mean_ms"), "", "unknown is empty, never 0");
        let rate = slot.rate_per_s().unwrap();
        assert_eq!(cell(i, "rate_per_s").parse::<f64>().unwrap(), rate, "no digit is lost");
    }
    assert_eq!(cell(1, "role"), "probe");
    assert_eq!(cell(1, "probe"), "cipher-chacha20");
    assert_eq!(cell(0, "probe"), "");
}

#[test]
fn lines_of_json_have_the_same_columns() {
    let (run, verdict) = sample::slower();
    let csv = text(&run, &verdict, Format::Csv, None);
    let heads: std::collections::BTreeSet<String> = fields(csv.lines().next().unwrap()).into_iter().collect();
    let lines = text(&run, &verdict, Format::Ndjson, None);
    assert_eq!(lines.lines().count(), run.slots.len());
    for (line, slot) in lines.lines().zip(&run.slots) {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        let keys: std::collections::BTreeSet<String> = value.as_object().unwrap().keys().cloned().collect();
        assert_eq!(keys, heads);
        assert_eq!(value["bytes_in"], slot.tally.bytes_in);
        assert!(value["dns_p50_ms"].is_null());
    }
    let only = text(&run, &verdict, Format::Ndjson, Some("B"));
    assert!(only.lines().count() > 0 && only.lines().all(|line| line.contains("\"target\":\"B\"")), "{only}");
}

#[test]
fn hostile_names_run_nothing_in_a_spreadsheet_or_on_a_terminal() {
    let name = "=cmd|'/c calc'!A1,\"x\"\u{1b}[31m\u{202e}\n";
    let run =
        sample::run(&[server(name, "http://a.example/", 100, 1_000), server("B", "http://b.example/", 90, 1_000)], 1);
    let verdict = Verdict::default();
    for format in [Format::Csv, Format::Ndjson, Format::Junit, Format::Json] {
        let text = text(&run, &verdict, format, None);
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{}: {text}", format.name());
    }
    let csv = text(&run, &verdict, Format::Csv, None);
    assert!(!csv.contains(",=") && csv.contains("\"'=cmd"), "{csv}");
    assert!(csv.split_terminator("\r\n").all(|line| !line.contains('\n')), "{csv}");
}

#[test]
fn percentiles_are_of_one_target() {
    let (run, verdict) = sample::slower();
    let all = |target: &str| text(&run, &verdict, Format::Hgrm, Some(target));
    let text = all("B");
    let mut merged = Distribution::default();
    let measured = run.slots.iter().filter(|slot| slot.target == 1 && slot.role == SlotRole::Measured);
    measured.for_each(|slot| merged.merge(&slot.tally.response));
    let rows: Vec<Vec<f64>> = text
        .lines()
        .skip(2)
        .take_while(|line| !line.starts_with('#'))
        .map(|line| line.split_whitespace().map(|field| field.parse().unwrap()).collect())
        .collect();
    for row in &rows {
        let expected_ms = merged.quantile_ns(row[1]).unwrap() as f64 / 1e6;
        assert!((row[0] - expected_ms).abs() < 0.001, "{row:?} {expected_ms}");
    }
    assert_eq!(rows.last().unwrap()[1..], [1.0, merged.count() as f64]);
    assert!(text.contains(&format!("Total count    = {:12}]", merged.count())), "{text}");
    assert_ne!(all("A"), text);

    let refused = |format, target| export(&run, &verdict, format, target).unwrap_err();
    assert_eq!(refused(Format::Hgrm, None).to_string(), "hgrm holds one target; choose one with --target: A, B");
    assert_eq!(refused(Format::Csv, Some("C")).to_string(), "the run has no target 'C'; it has A, B");
    assert_eq!(refused(Format::Junit, Some("A")), ExportError::WholeRun("junit"));
    let mut empty = run.clone();
    empty.slots.clear();
    let nothing = export(&empty, &verdict, Format::Hgrm, Some("A")).unwrap_err();
    assert_eq!(nothing, ExportError::Nothing("A".into()));
}

#[test]
fn a_highcharts_series_for_each_target_that_was_measured() {
    let (mut run, verdict) = sample::slower();
    let of = |run: &Run, target| text(run, &verdict, Format::Highcharts, target);
    let both = of(&run, None);
    let (a, b) = both.split_once("\n\n").unwrap();
    assert_eq!(both, format!("// A\n{}\n// B\n{}", points_of(a), points_of(b)));
    assert_eq!(of(&run, Some("B")), format!("// B\n{}", points_of(b)));
    for (target, series) in [a, b].into_iter().enumerate() {
        let slots = || run.slots.iter().filter(|slot| slot.target == target && slot.role == SlotRole::Measured);
        let intervals = slots().flat_map(|slot| &slot.series.intervals);
        let points: Vec<(f64, u64)> = points_of(series).lines().map(point).collect();
        assert_eq!(points[0], (0.0, 0));
        assert_eq!(points.iter().map(|(_, n)| n).sum::<u64>(), intervals.map(|i| i.ok + i.failed).sum::<u64>());
        for (place, (at_s, _)) in points.iter().enumerate().take(points.len() - 1) {
            assert_eq!(*at_s, 0.5 * place as f64, "half seconds");
        }
        let elapsed_s = slots().map(|slot| slot.elapsed_ns).sum::<u64>() as f64 / 1e9;
        assert!((points.last().unwrap().0 - elapsed_s).abs() < 0.0001, "{points:?}");
    }

    run.slots.retain(|slot| slot.target == 0 || slot.role != SlotRole::Measured);
    assert_eq!(of(&run, None), format!("// A\n{}", points_of(a)));
    let refused = |run: &Run, target| export(run, &verdict, Format::Highcharts, target).unwrap_err();
    assert_eq!(refused(&run, Some("B")).to_string(), "no slot of B was measured: there is nothing to write");
    let (searched, _) = sample::searched();
    assert_eq!(refused(&searched, None), ExportError::NotMeasured("A, B".into()));
}

/// The lines of a series that are points.
fn points_of(series: &str) -> String {
    series.lines().filter(|line| line.starts_with('[')).map(|line| format!("{line}\n")).collect()
}

fn point(line: &str) -> (f64, u64) {
    let (at_s, requests) = line.strip_prefix('[').unwrap().strip_suffix("],").unwrap().split_once(", ").unwrap();
    assert_eq!(at_s.split_once('.').unwrap().1.len(), 4, "{line}");
    (at_s.parse().unwrap(), requests.parse().unwrap())
}

#[test]
fn test_cases() {
    let (mut run, mut verdict) = sample::slower();
    verdict.pairs.push(pair("C", Metric::Rate, Call::Unknown, Some([0.99, 0.9, 1.1])));
    verdict.pairs.push(pair("D", Metric::Rate, Call::Equivalent, Some([1.0, 0.99, 1.01])));
    let xml = text(&run, &verdict, Format::Junit, None);
    assert!(xml.contains("tests=\"7\" failures=\"3\" errors=\"0\" skipped=\"1\""), "{xml}");
    assert!(xml.contains("<failure type=\"slower\" message=\"B is 3.04x slower than A"), "{xml}");
    assert!(xml.contains("<skipped message=\"Unknown whether C"), "{xml}");
    verdict.headlines = vec![sample::headline(HeadlineKind::Failing, "B fails 20 % of its requests")];
    let xml = text(&run, &verdict, Format::Junit, None);
    assert!(xml.contains("<failure type=\"failing\" message=\"B fails 20 % of its requests"), "{xml}");
    assert!(xml.contains("message=\"B gives 0.329x as many good answers per second as A"), "{xml}");
    run.status =
        RunStatus::Interrupted(Interruption::TargetDied { target: "B".into(), at_ns: 1, how: "<gone>".into() });
    verdict.headlines = vec![sample::headline(HeadlineKind::TargetDied, "Target died: B (<gone>)")];
    let xml = text(&run, &verdict, Format::Junit, None);
    assert!(xml.contains("errors=\"1\"") && xml.contains("&lt;gone&gt;") && !xml.contains("<gone>"), "{xml}");
}

#[test]
fn a_run_without_slots_has_a_header_and_no_row() {
    let (mut run, verdict) = sample::slower();
    run.slots.clear();
    assert_eq!(text(&run, &verdict, Format::Csv, None).lines().count(), 1);
    assert_eq!(text(&run, &verdict, Format::Ndjson, None), "");
    assert!(text(&run, &Verdict::default(), Format::Junit, None).contains("skipped=\"2\""));
}

#[cfg(not(feature = "parquet"))]
#[test]
fn a_build_without_parquet_says_so() {
    let (run, verdict) = sample::slower();
    let refused = export(&run, &verdict, Format::Parquet, None).unwrap_err().to_string();
    assert!(refused.contains("built without parquet"), "{refused}");
}

#[cfg(feature = "parquet")]
#[test]
fn a_parquet_file_has_the_columns_and_the_rows() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::{Row, RowAccessor};
    let (run, verdict) = sample::slower();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.parquet");
    std::fs::write(&path, export(&run, &verdict, Format::Parquet, None).unwrap()).unwrap();
    let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
    let schema = reader.metadata().file_metadata().schema();
    let names: Vec<String> = schema.get_fields().iter().map(|field| field.name().to_owned()).collect();
    let csv = text(&run, &verdict, Format::Csv, None);
    assert_eq!(names, fields(csv.lines().next().unwrap()));
    let at = |name: &str| names.iter().position(|n| n == name).unwrap();
    let rows: Vec<Row> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows.len(), run.slots.len());
    for (row, slot) in rows.iter().zip(&run.slots) {
        assert_eq!(row.get_long(at("ok_ops")).unwrap() as u64, slot.tally.ok);
        assert_eq!(row.get_string(at("target")).unwrap(), &run.plan.targets[slot.target].name);
        assert_eq!(row.get_double(at("rate_per_s")).unwrap(), slot.rate_per_s().unwrap());
        assert!(row.get_double(at("dns_mean_ms")).is_err(), "unknown is null, never 0");
    }
}

/// What another implementation than the one that wrote it reads from the file.
#[cfg(feature = "parquet")]
const READER: &str = "import sys, json, pyarrow.parquet as parquet
table = parquet.read_table(sys.argv[1])
types = {field.name: str(field.type) for field in table.schema}
print(json.dumps({'types': types, 'names': table.column_names, 'rows': table.to_pylist()}))";

/// pyarrow is no small thing to install: where it is not, this is skipped, whatever else may not be.
#[cfg(feature = "parquet")]
#[test]
fn another_program_reads_the_parquet_file_as_it_was_meant() {
    let python = |args: &[&str]| std::process::Command::new("python3").args(args).output();
    if !python(&["-c", "import pyarrow.parquet"]).is_ok_and(|done| done.status.success()) {
        println!("skipped another_program_reads_the_parquet_file_as_it_was_meant: python3 has no pyarrow here");
        return;
    }
    let (run, verdict) = sample::slower();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.parquet");
    std::fs::write(&path, export(&run, &verdict, Format::Parquet, None).unwrap()).unwrap();
    let done = python(&["-c", READER, path.to_str().unwrap()]).unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let read: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    // The lines of JSON hold the same columns and values.
    let lines = text(&run, &verdict, Format::Ndjson, None);
    let expected: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let rows = read["rows"].as_array().unwrap();
    assert_eq!(rows.len(), run.slots.len());
    assert_eq!(rows, &expected);
    let csv = text(&run, &verdict, Format::Csv, None);
    assert_eq!(serde_json::json!(fields(csv.lines().next().unwrap())), read["names"]);
    for (column, kind) in [("target", "string"), ("ok_ops", "int64"), ("rate_per_s", "double")] {
        assert_eq!(read["types"][column], kind, "{column}");
    }
}
