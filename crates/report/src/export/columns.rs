//! The columns that all row-by-row forms share: one row for each slot.
//!
//! Units end the names. A cell that is not known is empty, never 0. Columns are only ever added, at the end.

use crate::text::clean;
use duel_model::{Distribution, Run, Schema, Slot, SlotRole};

/// What a cell holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    /// A text, safe to show.
    Text(String),
    /// A count, or a time in whole units.
    Whole(u64),
    /// A time that may lie before 1970.
    Signed(i64),
    /// A measured figure; always finite.
    Figure(f64),
    /// Not known.
    Unknown,
}

impl Cell {
    fn figure(value: Option<f64>) -> Self {
        value.filter(|v| v.is_finite()).map_or(Self::Unknown, Self::Figure)
    }

    /// Milliseconds of a length of time; dividing by a million keeps every nanosecond of less than 104 days.
    fn ms(value_ns: Option<f64>) -> Self {
        Self::figure(value_ns.map(|ns| ns / 1e6))
    }
}

/// The type of a column's cells, for forms that have to say so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "parquet"), allow(dead_code, reason = "only typed forms ask"))]
pub(super) enum Kind {
    Text,
    Whole,
    Signed,
    Figure,
}

/// The value of a slot.
type CellOf = Box<dyn Fn(&Run, &Slot) -> Cell>;

/// A named column.
pub(super) struct Column {
    pub(super) name: String,
    #[cfg_attr(not(feature = "parquet"), allow(dead_code, reason = "only typed forms ask"))]
    pub(super) kind: Kind,
    cell: CellOf,
}

impl Column {
    pub(super) fn cell(&self, run: &Run, slot: &Slot) -> Cell {
        (self.cell)(run, slot)
    }
}

/// The slots of all targets, or of one; those of probes and of warm-up included, as they ran.
pub(super) fn rows(run: &Run, only: Option<usize>) -> impl Iterator<Item = &Slot> {
    run.slots.iter().filter(move |slot| only.is_none_or(|index| slot.target == index))
}

/// All columns in their order.
pub(super) fn columns(schema: &'static Schema) -> Vec<Column> {
    let mut columns = vec![
        column("run", Kind::Text, |run, _| Cell::Text(clean(&run.id))),
        whole("slot", |slot| u64::from(slot.index)),
        column("target", Kind::Text, |run, slot| {
            run.plan.targets.get(slot.target).map_or(Cell::Unknown, |target| Cell::Text(clean(&target.name)))
        }),
        column("role", Kind::Text, |_, slot| Cell::Text(role(&slot.role).to_owned())),
        column("probe", Kind::Text, |_, slot| match &slot.role {
            SlotRole::Probe(id) => Cell::Text(clean(id)),
            SlotRole::Warmup | SlotRole::Measured | SlotRole::Search | SlotRole::HeadToHead => Cell::Unknown,
        }),
        whole("block", |slot| u64::from(slot.block)),
        whole("repeat", |slot| u64::from(slot.repeat)),
        column("started_unix_ms", Kind::Signed, |_, slot| Cell::Signed(slot.started_unix_ms)),
        figure("offset_s", |slot| Some(slot.offset_ns as f64 / 1e9)),
        figure("elapsed_s", |slot| Some(slot.elapsed_ns as f64 / 1e9)),
        whole("started_ops", |slot| slot.tally.started),
        whole("ok_ops", |slot| slot.tally.ok),
        whole("failed_ops", |slot| slot.tally.failed_total()),
        whole("in_flight_ops", |slot| slot.tally.in_flight),
        whole("unstarted_ops", |slot| slot.tally.unstarted),
        figure("rate_per_s", Slot::rate_per_s),
        whole("bytes_in", |slot| slot.tally.bytes_in),
        whole("bytes_out", |slot| slot.tally.bytes_out),
        whole("body_bytes", |slot| slot.tally.body_bytes),
        whole("connections", |slot| slot.tally.connections),
        whole("resumed_connections", |slot| slot.tally.resumed),
        whole("reused_ops", |slot| slot.tally.reused),
    ];
    columns.extend(times("response", |slot| &slot.tally.response));
    columns.extend(times("service", |slot| slot.tally.told_service()));
    for phase in schema.phases {
        let of = move |slot: &Slot| slot.tally.phases.get(&phase.id()).filter(|d| !d.is_empty()).cloned();
        columns.push(column(format!("{}_ops", phase.name), Kind::Whole, move |_, slot| {
            Cell::Whole(of(slot).map_or(0, |times| times.count()))
        }));
        // Of the ops that went through the phase.
        columns.push(column(format!("{}_mean_ms", phase.name), Kind::Figure, move |_, slot| {
            Cell::ms(of(slot).and_then(|times| times.mean_ns()))
        }));
        columns.push(column(format!("{}_p50_ms", phase.name), Kind::Figure, move |_, slot| {
            Cell::ms(of(slot).and_then(|times| times.quantile_ns(0.5)).map(|ns| ns as f64))
        }));
    }
    for kind in schema.failures {
        columns.push(whole(format!("failed_{}_ops", kind.name.replace('-', "_")), move |slot| {
            slot.tally.failed.get(&kind.id()).copied().unwrap_or(0)
        }));
    }
    columns.push(column("statuses", Kind::Text, |_, slot| {
        let all: Vec<String> = slot.tally.statuses.iter().map(|(status, n)| format!("{status}:{n}")).collect();
        if all.is_empty() { Cell::Unknown } else { Cell::Text(all.join(" ")) }
    }));
    columns.push(figure("generator_cpu_max_share", |slot| {
        let shares: Option<Vec<f64>> = slot.audit.workers.iter().map(duel_model::WorkerAudit::utilisation).collect();
        shares?.into_iter().reduce(f64::max)
    }));
    columns.push(figure("schedule_lag_p99_ms", |slot| lag_p99_ms(slot, |worker| &worker.schedule_lag)));
    columns.push(figure("loop_lag_p99_ms", |slot| lag_p99_ms(slot, |worker| &worker.loop_lag)));
    columns.push(column("treatment", Kind::Text, |run, slot| {
        slot.treatment.map_or(Cell::Unknown, |number| Cell::Text(clean(&run.plan.treatment_name(number as usize))))
    }));
    columns.push(whole("shed_ops", |slot| slot.tally.shed));
    columns.push(figure("offered_per_s", |slot| slot.offered_per_s));
    columns
}

fn role(role: &SlotRole) -> &'static str {
    match role {
        SlotRole::Warmup => "warmup",
        SlotRole::Measured => "measured",
        SlotRole::Search => "search",
        SlotRole::HeadToHead => "head-to-head",
        SlotRole::Probe(_) => "probe",
    }
}

fn lag_p99_ms(slot: &Slot, of: fn(&duel_model::WorkerAudit) -> &Distribution) -> Option<f64> {
    let mut all = Distribution::default();
    slot.audit.workers.iter().for_each(|worker| all.merge(of(worker)));
    all.quantile_ns(0.99).map(|ns| ns as f64 / 1e6)
}

/// Quantiles, mean and extremes of a distribution, with the number of its values.
fn times(name: &'static str, of: fn(&Slot) -> &Distribution) -> Vec<Column> {
    type Take = fn(&Distribution) -> Option<f64>;
    let takes: [(&str, Take); 8] = [
        ("mean", Distribution::mean_ns),
        ("min", |d| d.min_ns().map(|ns| ns as f64)),
        ("p50", |d| d.quantile_ns(0.5).map(|ns| ns as f64)),
        ("p90", |d| d.quantile_ns(0.9).map(|ns| ns as f64)),
        ("p95", |d| d.quantile_ns(0.95).map(|ns| ns as f64)),
        ("p99", |d| d.quantile_ns(0.99).map(|ns| ns as f64)),
        ("p99_9", |d| d.quantile_ns(0.999).map(|ns| ns as f64)),
        ("max", |d| d.max_ns().map(|ns| ns as f64)),
    ];
    let mut columns = vec![whole(format!("{name}_values"), move |slot| of(slot).count())];
    columns.extend(takes.map(|(what, take)| {
        column(format!("{name}_{what}_ms"), Kind::Figure, move |_, slot| Cell::ms(take(of(slot))))
    }));
    columns
}

fn column(name: impl Into<String>, kind: Kind, cell: impl Fn(&Run, &Slot) -> Cell + 'static) -> Column {
    Column { name: name.into(), kind, cell: Box::new(cell) }
}

fn whole(name: impl Into<String>, value: impl Fn(&Slot) -> u64 + 'static) -> Column {
    column(name, Kind::Whole, move |_, slot| Cell::Whole(value(slot)))
}

fn figure(name: impl Into<String>, value: impl Fn(&Slot) -> Option<f64> + 'static) -> Column {
    column(name, Kind::Figure, move |_, slot| Cell::figure(value(slot)))
}
