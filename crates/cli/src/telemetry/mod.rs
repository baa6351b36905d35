//! Figures for other systems while a run goes on: a page for Prometheus (`--metrics`), and pushes of OTLP (`--otlp`).
//!
//! The measurement comes first. The main thread, which waits while the workers load, notes figures under a lock that
//! nobody holds for longer than a copy takes. Threads of their own serve and send them, at low priority, bounded in time,
//! number and size. What fails there becomes a doubt, not an error.

mod figures;
mod listener;
pub(crate) mod otlp;
mod prometheus;
mod shared;

use crate::outcome::Usage;
use crate::output::OutputFlags;
use clap::Args;
use duel_lab::View;
use duel_model::{Doubt, Run, Slot, Verdict};
use listener::Listener;
use otlp::{Destination, Exporter};
use shared::Shared;
use std::io::Write;
use std::time::SystemTime;

/// Who is told figures while a run goes on.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Telemetry")]
pub(crate) struct TelemetryFlags {
    /// Serve live figures for Prometheus at http://ADDR/metrics as long as the run lasts. ADDR is HOST:PORT, or a PORT on
    /// 127.0.0.1
    #[arg(long, value_name = "ADDR")]
    pub(crate) metrics: Option<String>,
    /// Send figures to this OpenTelemetry collector (OTLP over HTTP, JSON), every 10 s and at the end; http://HOST:4318 or a
    /// whole URL. Header fields for it are read from $OTEL_EXPORTER_OTLP_HEADERS, another interval in ms from
    /// $OTEL_METRIC_EXPORT_INTERVAL
    #[arg(long, value_name = "URL")]
    pub(crate) otlp: Option<String>,
}

impl TelemetryFlags {
    /// Refuses what cannot be meant, without touching the network.
    pub(crate) fn checked(&self) -> Result<(), Usage> {
        self.metrics.as_deref().map(listener::address).transpose()?;
        self.otlp.as_deref().map(Destination::of).transpose()?;
        Ok(())
    }
}

/// Whoever is told, for the time of one run.
#[derive(Debug)]
pub(crate) struct Telemetry {
    figures: Shared,
    _listener: Option<Listener>,
    exporter: Option<Exporter>,
}

impl Telemetry {
    /// Opens what the flags ask for; `None` where they ask for nothing. A place that cannot be listened on is an error:
    /// nothing has been measured yet, and it will not get better.
    pub(crate) fn open(flags: &TelemetryFlags, output: &OutputFlags) -> anyhow::Result<Option<Self>> {
        if flags.metrics.is_none() && flags.otlp.is_none() {
            return Ok(None);
        }
        let figures = Shared::default();
        let listener = flags.metrics.as_deref().map(|typed| Listener::open(typed, figures.clone())).transpose()?;
        if let Some(listener) = &listener
            && !output.quiet
        {
            let _ = writeln!(std::io::stderr(), "Metrics: http://{}/metrics", listener.address());
        }
        let exporter = match flags.otlp.as_deref() {
            Some(typed) => Some(Exporter::start(Destination::of(typed)?, figures.clone())?),
            None => None,
        };
        Ok(Some(Self { figures, _listener: listener, exporter }))
    }

    /// Slots of a run begin, or more of them: what is told counts from now on, also where the run began long ago.
    pub(crate) fn begun(&self, run: &Run) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.figures.lock().begin(run, now);
    }

    /// A slot is over.
    pub(crate) fn slot(&self, slot: &Slot) {
        self.figures.lock().add(slot);
    }

    /// How far it has come.
    pub(crate) fn live(&self, view: &View<'_>) {
        self.figures.lock().look(view);
    }

    /// The run is over: sends the last figures, and tells what went wrong.
    pub(crate) fn finish(self, verdict: &Verdict) -> Option<Doubt> {
        self.figures.lock().conclude(verdict);
        self.exporter.and_then(Exporter::finish)
    }
}
