//! Report of a run of `tampu perf log`.

use std::io::Write;

use serde_json::{Map, Value, json};

use crate::{
    commands::perf::log::PerfLog,
    failure::{Outcome, written},
    measure::Usage,
};

/// Reports and resource usage of the processes of one run.
pub struct Run {
    pub produced: Value,
    /// Reports of the clients that ran all the time.
    pub received: Vec<Value>,
    /// Reports of the clients that were stopped meanwhile.
    pub stopped: Vec<Value>,
    pub kept: Option<Value>,
    pub node: Option<Usage>,
    pub collector: Option<Usage>,
    /// Bytes a second that the disk can write.
    pub disk: Option<f64>,
}

/// Lowest accepted share of the requested rate of records.
const RATE_KEPT: f64 = 0.995;

fn number(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or(0.0)
}

/// The account, one JSON object.
pub fn report(asked: &PerfLog, run: &Run) -> Value {
    let records = number(&run.produced, "produced") - number(&run.produced, "dropped");
    let elapsed = number(&run.produced, "elapsed_s").max(1e-9);
    let column = |clients: &[Value], name: &str| clients.iter().map(|client| number(client, name)).collect::<Vec<_>>();
    let received = column(&run.received, "received");
    let lost_live: f64 = received.iter().map(|count| (records - count).max(0.0)).sum();
    let stored = run.kept.as_ref().map(|status| number(&status["archive"], "records"));
    let lost = number(&run.produced, "dropped") + lost_live + stored.map_or(0.0, |stored| (records - stored).max(0.0));
    let rate = |client: &Value| number(client, "received") / number(client, "elapsed_s").max(1e-9);
    let slowest = run.received.iter().map(rate).fold(f64::INFINITY, f64::min);
    let archive = |name: &str| run.kept.as_ref().map(|status| number(&status["archive"], name));

    let clients_cpu = column(&run.received, "cpu_s");
    let cpu = [
        ("producer", Some(number(&run.produced, "cpu_s"))),
        ("node", run.node.map(|used| used.cpu.as_secs_f64())),
        ("collector", run.collector.map(|used| used.cpu.as_secs_f64())),
    ];
    let memory = [
        ("producer", Some(number(&run.produced, "rss"))),
        ("node", run.node.map(|used| used.rss as f64)),
        ("collector", run.collector.map(|used| used.rss as f64)),
    ];
    let a_record = |all: f64| all / records.max(1.0);
    json!({
        "records_per_s": (records / elapsed).round(),
        "lost": lost,
        "cpu_s": by_process(&cpu, &clients_cpu, 1.0),
        "cpu_us_per_record": by_process(&cpu, &clients_cpu, 1e6 / records.max(1.0)),
        "rss_mb": by_process(&memory, &column(&run.received, "rss"), 1e-6),
        "bytes_per_record": {
            "bus": a_record(number(&run.produced, "bytes")),
            "disk": archive("bytes").map(a_record),
        },
        "clients": asked.clients,
        "seconds": elapsed,
        "size": asked.size,
        "packet": asked.packet,
        "rate": asked.rate,
        "rate_kept": asked.rate.map(|rate| {
            number(&run.produced, "produced") >= rate * number(&run.produced, "logging_s") * RATE_KEPT
        }),
        "live_only": asked.live,
        "records": records,
        "stored": stored,
        "received": received,
        "wrong": column(&run.received, "wrong").iter().chain(&column(&run.stopped, "wrong")).sum::<f64>(),
        "slowest_client_per_s": if run.received.is_empty() { Value::Null } else { json!(slowest.round()) },
        "immediate": slowest_immediate(&run.received),
        "stopped_clients": run.stopped.iter().map(|client| json!({
            "received": client["received"],
            "gap_packets": client["gap_packets"],
        })).collect::<Vec<_>>(),
        "backlog": run.produced["backlog"],
        "confirmed": run.produced["confirmed"],
        "acknowledged": run.produced["acknowledged"],
        "wal_mb_per_s": archive("bytes").map(|bytes| bytes / elapsed / 1e6),
        "disk_mb_per_s": run.disk.map(|speed| speed / 1e6),
        "slowest_commit_ms": archive("slowest_commit_us").map(|us| us / 1e3),
    })
}

/// Returns values by process; a process that does not take part has no entry.
fn by_process(one: &[(&str, Option<f64>)], clients: &[f64], scale: f64) -> Map<String, Value> {
    let processes = one.iter().filter_map(|(name, value)| Some(((*name).to_owned(), json!((*value)? * scale))));
    let clients = clients.iter().map(|value| value * scale).collect::<Vec<_>>();
    processes.chain([("clients".to_owned(), json!(clients))]).collect()
}

/// Returns the times of the client with the slowest hundredth.
fn slowest_immediate(received: &[Value]) -> Value {
    let told = received.iter().map(|client| &client["immediate"]).filter(|times| times["p99_us"].is_number());
    told.max_by(|one, other| number(one, "p99_us").total_cmp(&number(other, "p99_us"))).cloned().unwrap_or(Value::Null)
}

/// Prints the report in the requested format.
pub fn show(asked: &PerfLog, report: &Value) -> Outcome {
    let mut out = std::io::stdout().lock();
    if asked.json {
        return written(writeln!(out, "{report}"));
    }
    let mut say = |line: String| written(writeln!(out, "{line}"));
    let value = |value: &Value| value.as_f64().unwrap_or(0.0);
    let what = if asked.live { "to the clients" } else { "kept and to the clients" };
    say(format!(
        "{:.0} records/s of {} B {what}, {:.0} lost, {} clients, {:.1} s",
        value(&report["records_per_s"]),
        asked.size,
        value(&report["lost"]),
        asked.clients,
        value(&report["seconds"]),
    ))?;
    if !asked.live {
        let on = report["disk_mb_per_s"].as_f64().map_or(String::new(), |speed| format!(" on a disk of {speed:.0} MB/s"));
        say(format!("write-ahead {:.0} MB/s{on}", value(&report["wal_mb_per_s"])))?;
    }
    let cpu = &report["cpu_us_per_record"];
    let mut parts = Vec::new();
    for name in ["producer", "node", "collector"] {
        parts.extend(cpu[name].as_f64().map(|us| format!("{name} {us:.2}")));
    }
    let clients = cpu["clients"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !clients.is_empty() {
        parts.push(format!("clients {:.2} together", clients.iter().map(value).sum::<f64>()));
    }
    say(format!("CPU a record, us: {}", parts.join(", ")))?;
    let acknowledged = &report["acknowledged"];
    if acknowledged.is_object() {
        let us = |name: &str| number(acknowledged, name);
        say(format!(
            "an acknowledged call, us: p50 {:.0}, p99 {:.0}, longest {:.0}; {} calls, {} not confirmed",
            us("p50_us"),
            us("p99_us"),
            us("max_us"),
            us("count"),
            us("unconfirmed"),
        ))?;
    }
    let backlog = &report["backlog"];
    let mb = |name: &str| number(backlog, name) / 1e6;
    say(format!(
        "waiting for the commit: at most {:.2} MB of {:.2}, {:.2} on average; {:.2} in the first quarter, {:.2} in the last",
        mb("max"),
        mb("bound"),
        mb("mean"),
        mb("first_quarter"),
        mb("last_quarter"),
    ))?;
    if let (Some(rate), Some(kept)) = (asked.rate, report["rate_kept"].as_bool()) {
        say(format!("{rate:.0} records/s were asked for: {}", if kept { "kept" } else { "not kept" }))?;
    }
    let immediate = &report["immediate"];
    if immediate.is_object() {
        let us = |name: &str| number(immediate, name);
        say(format!(
            "an immediate record to a client, us: p50 {:.0}, p99 {:.0}, longest {:.0}",
            us("p50_us"),
            us("p99_us"),
            us("max_us")
        ))?;
    }
    Ok(())
}
