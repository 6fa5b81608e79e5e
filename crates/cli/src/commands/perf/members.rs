//! Many processes on one host: the time until all know all, and their cost while idle.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use clap::Args;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tampu_bus::QosTable;
use tampu_log::{LogSettings, Logger, info};

use crate::{
    commands::perf::{
        process::{join, say},
        scene::{Scene, Worker},
    },
    context::Context,
    failure::Failure,
};

/// Time limit until every process knows every other.
const PATIENCE: Duration = Duration::from_secs(600);

/// A process that joins and stays.
#[derive(Debug, Clone, Args)]
pub struct Asked {
    /// Name of the process among the others
    name: String,
    /// Processes to wait for
    members: usize,
    /// Logs, as processes do: one record at its beginning
    #[arg(long)]
    logs: bool,
}

/// Runs one member: reports when it knows all others, then stays until it is told to end.
pub fn member(context: &Context, Asked { name, members, logs }: &Asked, ended: &AtomicBool) -> Result<Value, Failure> {
    let begun = Instant::now();
    let participant = join(context, name, QosTable::default())?;
    let joined = begun.elapsed();
    let logger = logs.then(|| {
        let mut settings = LogSettings::isolated(participant.domain().clone(), participant.source().clone());
        settings.rings = participant.log_rings();
        Logger::on(participant.clone(), settings)
    });
    let logger = logger.transpose().map_err(|error| Failure::failed("the logger", error))?;
    if let Some(logger) = &logger {
        info!(logger, "joined after {} ms", joined.as_millis() as u64);
    }
    let seen = Arc::new(Mutex::new((HashSet::new(), 0u64)));
    let told = seen.clone();
    let _watch = participant.watch_sources(move |source, here| {
        if source.source.as_str().starts_with("member-") {
            let (known, changes) = &mut *told.lock();
            let is_news = if here { known.insert(source.incarnation) } else { known.remove(&source.incarnation) };
            *changes += u64::from(is_news);
        }
    });
    let known = || seen.lock().0.len();
    while known() < *members {
        if begun.elapsed() > PATIENCE || ended.load(Ordering::Acquire) || context.interrupt.asked() {
            return Err(Failure::Failed(format!("{name} knows {} of {members} members after {:?}", known(), begun.elapsed())));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let (knew_all_s, changes) = (begun.elapsed().as_secs_f64(), seen.lock().1);
    say(&json!({ "joined_s": joined.as_secs_f64(), "knew_all_s": knew_all_s, "changes": changes }))?;
    while !ended.load(Ordering::Acquire) && !context.interrupt.asked() {
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(json!({ "done": true }))
}

/// Starts so many processes and measures them.
pub fn measure(
    scene: &Scene,
    hub: &Worker,
    (count, log): (usize, bool),
    idle: Duration,
    context: &Context,
) -> Result<Value, Failure> {
    let begun = Instant::now();
    let mut members = Vec::new();
    for number in 0..count {
        let (name, all) = (format!("member-{number}"), count.to_string());
        let arguments = ["perf", "part", "member", &name, &all, "--logs"];
        members.push(scene.start(&name, &arguments[..arguments.len() - usize::from(!log)])?);
    }
    let started = begun.elapsed();
    let mut slowest: f64 = 0.0;
    for member in &mut members {
        slowest = slowest.max(member.report()?["knew_all_s"].as_f64().unwrap_or(0.0));
    }
    let all_know_all = begun.elapsed();

    let usages = || members.iter().map(Worker::usage).collect::<Vec<_>>();
    let (before, hub_before) = (usages(), hub.usage());
    context.interrupt.wait(idle);
    let (after, hub_after) = (usages(), hub.usage());
    let cpu: f64 = before.iter().zip(&after).map(|(before, after)| (after.cpu.saturating_sub(before.cpu)).as_secs_f64()).sum();
    let hub_cpu = hub_after.cpu.saturating_sub(hub_before.cpu).as_secs_f64();
    let mean = |of: fn(&crate::measure::Usage) -> u64| after.iter().map(of).sum::<u64>() as f64 / count.max(1) as f64 / 1e6;
    Ok(json!({
        "processes": count,
        "log": log,
        "starting_s": started.as_secs_f64(),
        "all_know_all_s": all_know_all.as_secs_f64(),
        "slowest_process_s": slowest,
        "rss_mb_each": mean(|usage| usage.rss),
        "pss_mb_each": mean(|usage| usage.pss),
        "sockets": after.iter().map(|usage| usage.sockets).sum::<usize>() + hub_after.sockets,
        "hub_rss_mb": hub_after.rss as f64 / 1e6,
        "hub_sockets": hub_after.sockets,
        "idle_cpu_percent_of_a_core": { "processes": 100.0 * cpu / idle.as_secs_f64(), "hub": 100.0 * hub_cpu / idle.as_secs_f64() },
    }))
}
