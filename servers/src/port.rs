//! Free ports.

use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::{Context, Result};

/// Where to look: below the ports that systems give to outgoing connections, even with
/// [`BUS_OFFSET`] added. From among those, somebody's connection could take the port of a server
/// that is being restarted, and a client that tries to reach it could connect to itself.
const RANGE: Range<u16> = 10_300..22_700;

/// How far the cluster bus of a Redis node is from its port.
const BUS_OFFSET: u16 = 10_000;

static TAKEN: AtomicU16 = AtomicU16::new(0);

/// A port that nobody listens on, nor on the cluster bus that would go with it. Each call gives
/// another one. Another process may still be quicker to listen there.
pub(crate) fn free() -> Result<u16> {
    let size = RANGE.end - RANGE.start;
    let first = (process::id().wrapping_mul(97) % u32::from(size)) as u16;
    (0..size)
        .map(|_| RANGE.start + (first + TAKEN.fetch_add(1, Ordering::Relaxed) % size) % size)
        .find(|port| is_free(*port) && is_free(port + BUS_OFFSET))
        .context("no free port on 127.0.0.1")
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_is_given_twice_or_while_somebody_listens() {
        let first = free().unwrap();
        let _taken = TcpListener::bind((Ipv4Addr::LOCALHOST, first)).unwrap();
        let second = free().unwrap();
        assert_ne!(first, second);
        assert!(!is_free(first));
        assert!(RANGE.contains(&first) && RANGE.contains(&second));
    }
}
