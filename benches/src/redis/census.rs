//! Counting what clients ask for.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::thread::{JoinHandle, spawn};

use anyhow::{Result, anyhow, ensure};
use lockkit_servers::redis::RedisServer;

/// Counts the requests that reach a server. Its own counter cannot: it includes the commands that
/// scripts run. So this reads along with MONITOR, which slows the server: count and time apart.
#[derive(Debug)]
pub(super) struct Census {
    feed: TcpStream,
    counting: JoinHandle<u32>,
}

impl Census {
    /// Counts from now on.
    pub(super) fn start(server: &RedisServer) -> Result<Self> {
        let mut feed = TcpStream::connect(server.address())?;
        feed.write_all(b"MONITOR\r\n")?;
        let mut lines = BufReader::new(feed.try_clone()?);
        let mut answer = String::new();
        lines.read_line(&mut answer)?;
        ensure!(answer == "+OK\r\n", "MONITOR was refused: {answer}");
        let counting = spawn(move || count(lines));
        Ok(Self { feed, counting })
    }

    /// How many there were.
    pub(super) fn finish(self) -> Result<f64> {
        self.feed.shutdown(Shutdown::Both)?;
        let requests = self.counting.join();
        Ok(requests.map_err(|_| anyhow!("the count was lost"))?.into())
    }
}

/// The lines look like `+1700000000.123456 [0 127.0.0.1:40000] "SET" "key" "value"`; a command
/// that a script runs has `lua` for an address.
fn count(lines: impl BufRead) -> u32 {
    let origin = |line: Vec<u8>| {
        line.splitn(4, |byte| *byte == b' ')
            .nth(2)
            .map(<[u8]>::to_vec)
    };
    lines
        .split(b'\n')
        .map_while(Result::ok)
        .filter_map(origin)
        .filter(|origin| origin != b"lua]")
        .fold(0, |count, _| count + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_script_does_is_no_request() {
        let feed = concat!(
            "+1700000000.000001 [0 127.0.0.1:40000] \"EVALSHA\" \"5f\" \"1\" \"k\"\r\n",
            "+1700000000.000002 [0 lua] \"get\" \"k\"\r\n",
            "+1700000000.000003 [0 127.0.0.1:40000] \"SET\" \"[0 lua]\" \"v\"\r\n",
        );
        assert_eq!(count(feed.as_bytes()), 2);
    }
}
