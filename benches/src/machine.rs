//! Where the figures come from: they mean little without it.

use std::fs::read_to_string;
use std::thread::available_parallelism;

use serde::Serialize;

#[derive(Debug, Serialize)]
pub(crate) struct Machine {
    cpu: String,
    cores: usize,
    kernel: String,
    load: String,
}

impl Machine {
    pub(crate) fn read() -> Self {
        let cpuinfo = read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpuinfo
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        Self {
            cpu: model.map_or("unknown", |(_, model)| model).to_owned(),
            cores: available_parallelism().map_or(0, usize::from),
            kernel: rustix::system::uname()
                .release()
                .to_string_lossy()
                .into_owned(),
            load: read_to_string("/proc/loadavg")
                .unwrap_or_default()
                .trim()
                .to_owned(),
        }
    }

    pub(crate) fn line(&self) -> String {
        let Self {
            cpu,
            cores,
            kernel,
            load,
        } = self;
        format!("{cpu}, {cores} cores, kernel {kernel}, load at the start {load}")
    }
}
