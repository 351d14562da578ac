//! The code that runs on real servers, on five nodes in memory: many clients, and a network that
//! loses, delays and reorders, in virtual time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockkit_core::{AttemptId, Clock, HoldId, LockName, Primitive, Renewal, Resource};
use tokio::time::sleep;

use super::acquire::Outcome;
use super::council::Council;
use super::fake::{FakeNode, FakeVoter};
use super::voter::{Bid, Voter, Which};

const TTL: Duration = Duration::from_millis(400);

/// What was granted, as the clients saw it.
#[derive(Debug, Default)]
struct Log {
    highest: u64,
    grants: usize,
    renewals: usize,
    /// Until when, in nanoseconds, the last holder believes in its hold.
    believed: Option<(u64, u64)>,
}

impl Log {
    fn granted(&mut self, token: u64, from: u64, until: u64) {
        if from >= until {
            return; // It came too late to be of use.
        }
        assert!(token > self.highest, "{token} after {}", self.highest);
        if let Some((holder, ends)) = self.believed {
            assert!(from >= ends, "{token} beside {holder}");
        }
        self.highest = token;
        self.grants += 1;
        self.believed = Some((token, until));
    }

    /// The holder believes in it for longer, or not any more.
    fn believes(&mut self, token: u64, until: u64) {
        if let Some((holder, ends)) = &mut self.believed
            && *holder == token
        {
            *ends = until;
        }
    }
}

async fn client(council: Council, resource: Resource, log: Arc<Mutex<Log>>, rounds: u64) {
    let now = || Clock::Tokio.now().as_nanos();
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).expect("short");
    for round in 0..rounds {
        let id = HoldId::new(resource.clone(), AttemptId::random());
        let bid = Bid {
            id: id.clone(),
            ttl: TTL,
            round,
            tail: String::new(),
        };
        if let Ok(Outcome::Held { token, sent_at }) = council.acquire(bid, Clock::Tokio).await {
            let mut until = sent_at.as_nanos() + nanos(TTL);
            log.lock().expect("no panic").granted(token, now(), until);
            for _ in 0..rand::random_range(0..4) {
                sleep(Duration::from_millis(rand::random_range(1..200))).await;
                let renewal = council
                    .renew(std::slice::from_ref(&id), Clock::Tokio, |_| {})
                    .await;
                match renewal.first() {
                    Some(Renewal::Renewed { sent_at, .. }) if now() < until => {
                        until = sent_at.as_nanos() + nanos(TTL);
                        let mut log = log.lock().expect("no panic");
                        log.believes(token, until);
                        log.renewals += 1;
                    }
                    Some(Renewal::Unknown(_)) if now() < until => {}
                    _ => break, // Lost.
                }
            }
            log.lock()
                .expect("no panic")
                .believes(token, until.min(now()));
        }
        let _ = council.release(&id, Which::All).await;
        sleep(Duration::from_millis(rand::random_range(0..30))).await;
    }
}

async fn storm(lost: u32, late: u32) -> (usize, usize) {
    let nodes: Vec<Arc<Mutex<FakeNode>>> = (0..5).map(|_| Arc::default()).collect();
    let log: Arc<Mutex<Log>> = Arc::default();
    let name = LockName::new("n").expect("a name");
    let resource = Resource::new(Primitive::Mutex, name);
    let clients = (0..6).map(|_| {
        let voters = nodes.iter().map(|node| {
            let node = Arc::clone(node);
            Arc::new(FakeVoter { node, lost, late }) as Arc<dyn Voter>
        });
        let council = Council::new(voters.collect());
        tokio::spawn(client(council, resource.clone(), Arc::clone(&log), 60))
    });
    for client in clients.collect::<Vec<_>>() {
        client
            .await
            .expect("tokens rise and nobody holds beside another");
    }
    let log = log.lock().expect("no panic");
    (log.grants, log.renewals)
}

#[tokio::test(start_paused = true)]
async fn tokens_rise_and_nobody_holds_beside_another_in_a_storm() {
    let (mut grants, mut renewals) = (0, 0);
    for round in 0..40 {
        let (lost, late) = [(0, 0), (20, 20), (100, 50), (50, 200)][round % 4];
        let (granted, renewed) = storm(lost, late).await;
        grants += granted;
        renewals += renewed;
    }
    assert!(
        grants > 300 && renewals > 100,
        "{grants} grants, {renewals} renewals"
    );
}
