//! Statistics of a simulation in the form that all commands share:
//! `{"command": ..., "figures": [{"name", "params", "value", "unit"}]}`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::root_complex::TlpCount;
use crate::serve::ServeOptions;
use crate::sim::Sim;

/// The figures of `serve`; the median of round trips is of those since the last time.
pub fn serve(sim: &mut Sim, options: &ServeOptions, wall: Duration) -> Value {
    let params = json!({
        "data_w": options.data_width,
        "queues": options.queues,
        "latency_ns": options.pcie_latency_ns,
        "seed": options.seed,
    });
    let mut figures = Vec::new();
    let mut add = |name: &str, extra: Value, value: f64, unit: &str| {
        let mut params = params.clone();
        if let (Value::Object(params), Value::Object(extra)) = (&mut params, extra) {
            params.extend(extra);
        }
        figures.push(json!({"name": name, "params": params, "value": value, "unit": unit}));
    };
    let round_trip = sim.take_round_trips();
    let (stats, link, wire) = (sim.stats(), sim.root.stats, sim.port.stats);
    let none = || json!({});
    add("cycles", none(), sim.now() as f64, "cycles");
    add("evaluated_cycles", none(), stats.evaluated as f64, "cycles");
    add("skipped_cycles", none(), stats.skipped as f64, "cycles");
    add(
        "outstanding_cycles",
        none(),
        stats.outstanding as f64,
        "cycles",
    );
    add("sim_khz", none(), stats.khz(), "kHz");
    add("busy_s", none(), stats.busy.as_secs_f64(), "s");
    add("wall_s", none(), wall.as_secs_f64(), "s");
    for (direction, frames, bytes) in [
        ("rx", wire.rx_frames, wire.rx_bytes),
        ("tx", wire.tx_frames, wire.tx_bytes),
    ] {
        let extra = json!({ "direction": direction });
        add("frames", extra.clone(), frames as f64, "frames");
        add("bytes", extra, bytes as f64, "bytes");
    }
    add("tx_aborted", none(), wire.tx_aborted as f64, "frames");
    add("interrupts", none(), link.interrupts as f64, "interrupts");
    add("dma_refused", none(), link.refused as f64, "accesses");
    add(
        "function_resets",
        none(),
        link.function_resets as f64,
        "resets",
    );
    add("doorbells", none(), stats.doorbells as f64, "doorbells");
    if let Some(cycles) = round_trip {
        let name = "doorbell_to_interrupt_median";
        add(name, none(), cycles as f64, "cycles");
    }
    add("tlps", none(), link.tlps() as f64, "TLPs");
    add("pcie_bytes", none(), link.wire_bytes() as f64, "bytes");
    let kinds: [(&str, TlpCount); 7] = [
        ("up_write", link.up_writes),
        ("up_read", link.up_reads),
        ("up_completion", link.up_completions),
        ("down_write", link.down_writes),
        ("down_read", link.down_reads),
        ("down_config", link.down_config),
        ("down_completion", link.down_completions),
    ];
    for (kind, count) in kinds {
        let extra = json!({ "tlp": kind });
        add("tlps_by_kind", extra.clone(), count.tlps as f64, "TLPs");
        add(
            "pcie_bytes_by_kind",
            extra,
            count.wire_bytes as f64,
            "bytes",
        );
    }
    json!({"command": "serve", "figures": figures})
}
