//! The figures of all drivers side by side, as a table that the book takes as it is.

use ferronic_figures::Figure;

/// Figures that have a column, by name, with its head; two names may share one.
const COLUMNS: [(&[&str], &str); 11] = [
    (&["boot_s"], "boot, s"),
    (&["ping_ms_median"], "ping, ms"),
    (&["ping_cycles_median"], "ping, cycles"),
    (&["tcp_mbit_s", "mbit_s"], "Mbit/s of the host"),
    (&["bytes_per_cycle"], "bytes a cycle"),
    (&["share_of_bench"], "share of bench"),
    (
        &["interrupts_per_frame", "interrupts_per_packet"],
        "interrupts a frame",
    ),
    (&["doorbells_per_frame"], "doorbells a frame"),
    (&["avail_entries_per_mb"], "entries a MB"),
    (&["doorbells_per_mb"], "doorbells a MB"),
    (&["packets_per_mb"], "packets a MB"),
];

/// A row a driver and kind of traffic, in order of appearance.
pub fn table(figures: &[Figure]) -> String {
    let mut rows: Vec<[String; COLUMNS.len() + 2]> = Vec::new();
    for figure in figures {
        let Some(column) = COLUMNS
            .iter()
            .position(|(names, _)| names.contains(&figure.name.as_str()))
        else {
            continue;
        };
        let (driver, traffic) = (param(figure, "driver"), traffic(figure));
        let known = rows
            .iter()
            .position(|row| row[0] == driver && row[1] == traffic);
        let row = known.unwrap_or_else(|| {
            let mut row: [String; COLUMNS.len() + 2] = Default::default();
            (row[0], row[1]) = (driver, traffic);
            rows.push(row);
            rows.len() - 1
        });
        rows[row][column + 2] = number(&figure.name, figure.value);
    }
    let mut heads: [String; COLUMNS.len() + 2] = Default::default();
    heads[0] = "driver".to_owned();
    heads[1] = "traffic".to_owned();
    for (head, (_, name)) in heads[2..].iter_mut().zip(COLUMNS) {
        *head = name.to_owned();
    }
    let mut out = line(&heads);
    out += &line(&heads.clone().map(|_| "---".to_owned()));
    for row in &rows {
        out += &line(row);
    }
    out
}

fn line(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

fn param(figure: &Figure, name: &str) -> String {
    match figure.params.get(name) {
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

fn traffic(figure: &Figure) -> String {
    let has = |name: &str| figure.params.contains_key(name);
    let direction = param(figure, "direction");
    if has("workload") {
        let workload = param(figure, "workload");
        match param(figure, "policy").as_str() {
            "" => format!("{workload}, transmit queue"),
            policy => format!("{workload}, transmit queue, {policy}"),
        }
    } else if has("lro") {
        let [width, ip, lro] = ["data_w", "ip", "lro"].map(|name| param(figure, name));
        format!("TCP {direction}, IPv{ip}, LRO {lro}, {width} bits")
    } else if has("ip") {
        let names = ["data_w", "ip", "tso", "min_tso_segs"];
        let [width, ip, tso, segments] = names.map(|name| param(figure, name));
        format!("TCP {direction}, IPv{ip}, TSO {tso}, {segments} segments, {width} bits")
    } else if has("mtu") {
        format!("TCP {direction}, MTU {}", param(figure, "mtu"))
    } else if has("frame_bytes") {
        let bytes = figure.params.get("frame_bytes").and_then(|v| v.as_f64());
        format!("{direction}, {:.0} bytes on average", bytes.unwrap_or(0.0))
    } else {
        direction
    }
}

/// As many digits as a reader can use.
fn number(name: &str, value: f64) -> String {
    match name {
        "ping_cycles_median" => format!("{value:.0}"),
        "boot_s" | "tcp_mbit_s" | "mbit_s" | "avail_entries_per_mb" | "packets_per_mb" => {
            format!("{value:.1}")
        }
        "interrupts_per_frame" | "interrupts_per_packet" | "doorbells_per_frame" => {
            format!("{value:.3}")
        }
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_has_a_row_a_driver_and_kind_of_traffic() {
        let tcp = |driver: &str, name: &str, value: f64| {
            Figure::new(name, value, "1")
                .with("driver", driver)
                .with("direction", "tx")
                .with("mtu", 1500)
        };
        let figures = [
            Figure::new("boot_s", 4.25, "s").with("driver", "linux"),
            tcp("linux", "tcp_mbit_s", 20.0),
            tcp("linux", "share_of_bench", 0.9),
            tcp("ferronic", "bytes_per_cycle", 7.0),
            tcp("ferronic", "of_no_interest", 7.0),
            Figure::new("avail_entries_per_mb", 15.3, "1/MB")
                .with("driver", "linux")
                .with("direction", "tx")
                .with("tso", "on")
                .with("ip", "6")
                .with("min_tso_segs", "40")
                .with("data_w", "64"),
            Figure::new("packets_per_mb", 19.3, "1/MB")
                .with("driver", "linux")
                .with("direction", "rx")
                .with("lro", "on")
                .with("ip", "4")
                .with("data_w", "512"),
            Figure::new("interrupts_per_packet", 0.0224, "interrupts")
                .with("driver", "ferronic")
                .with("workload", "bulk")
                .with("policy", "marker"),
            Figure::new("mbit_s", 3.0, "Mbit/s")
                .with("driver", "dpdk")
                .with("direction", "rx")
                .with("frame_bytes", 64.0),
        ];
        let table = table(&figures);
        let lines: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "| linux |  | 4.2 |  |  |  |  |  |  |  |  |  |  |",
                "| linux | TCP tx, MTU 1500 |  |  |  | 20.0 |  | 0.90 |  |  |  |  |  |",
                "| ferronic | TCP tx, MTU 1500 |  |  |  |  | 7.00 |  |  |  |  |  |  |",
                "| linux | TCP tx, IPv6, TSO on, 40 segments, 64 bits |  |  |  |  |  |  |  |  | 15.3 |  |  |",
                "| linux | TCP rx, IPv4, LRO on, 512 bits |  |  |  |  |  |  |  |  |  |  | 19.3 |",
                "| ferronic | bulk, transmit queue, marker |  |  |  |  |  |  | 0.022 |  |  |  |  |",
                "| dpdk | rx, 64 bytes on average |  |  |  | 3.0 |  |  |  |  |  |  |  |",
            ]
        );
    }
}
