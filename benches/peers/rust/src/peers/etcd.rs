//! Locks in etcd.

use std::time::Duration;

use anyhow::{Result, ensure};
use etcd_client::{Client, Compare, CompareOp, LockOptions, PutOptions, Txn, TxnOp};

use super::{Peer, Task, held};
use crate::options::Options;

/// Grants a lease and keeps it alive until the process ends.
async fn lease(client: &Client, ttl: Duration) -> Result<i64> {
    let mut client = client.clone();
    let id = client.lease_grant(ttl.as_secs() as i64, None).await?.id();
    let (mut keeper, mut replies) = client.lease_keep_alive(id).await?;
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(ttl / 3).await;
            if keeper.keep_alive().await.is_err() || !matches!(replies.message().await, Ok(Some(_)))
            {
                return;
            }
        }
    });
    Ok(id)
}

async fn connect(options: &Options) -> Result<Client> {
    Ok(Client::connect(options.server.split(',').collect::<Vec<_>>(), None).await?)
}

/// The server-side lock service. The lease names the place in the queue, so every task has its own.
pub(crate) struct LockRpc {
    client: Client,
    ttl: Duration,
}

pub(crate) struct LockRpcTask {
    client: Client,
    name: String,
    lease: i64,
    key: Option<Vec<u8>>,
}

impl Peer for LockRpc {
    type Task = LockRpcTask;
    async fn connect(options: &Options) -> Result<Self> {
        Ok(Self {
            client: connect(options).await?,
            ttl: options.ttl,
        })
    }
    async fn task(&self, key: &str) -> Result<LockRpcTask> {
        let lease = lease(&self.client, self.ttl).await?;
        Ok(LockRpcTask {
            client: self.client.clone(),
            name: key.into(),
            lease,
            key: None,
        })
    }
}

impl Task for LockRpcTask {
    async fn lock(&mut self) -> Result<()> {
        let options = LockOptions::new().with_lease(self.lease);
        self.key = Some(
            self.client
                .lock(self.name.as_str(), Some(options))
                .await?
                .key()
                .to_vec(),
        );
        Ok(())
    }
    async fn unlock(&mut self) -> Result<()> {
        let key = held(&mut self.key)?;
        self.client.unlock(key).await?;
        Ok(())
    }
}

/// The least that an etcd lock can send: put if absent, then delete. It cannot wait.
pub(crate) struct Floor {
    client: Client,
    lease: i64,
}

pub(crate) struct FloorTask {
    client: Client,
    key: String,
    lease: i64,
}

impl Peer for Floor {
    type Task = FloorTask;
    async fn connect(options: &Options) -> Result<Self> {
        let client = connect(options).await?;
        let lease = lease(&client, options.ttl).await?;
        Ok(Self { client, lease })
    }
    async fn task(&self, key: &str) -> Result<FloorTask> {
        Ok(FloorTask {
            client: self.client.clone(),
            key: format!("floor/{key}"),
            lease: self.lease,
        })
    }
}

impl Task for FloorTask {
    async fn lock(&mut self) -> Result<()> {
        ensure!(self.try_lock().await?, "taken");
        Ok(())
    }
    async fn unlock(&mut self) -> Result<()> {
        self.client.delete(self.key.as_str(), None).await?;
        Ok(())
    }
    async fn try_lock(&mut self) -> Result<bool> {
        let put = PutOptions::new().with_lease(self.lease);
        let txn = Txn::new()
            .when([Compare::create_revision(
                self.key.as_str(),
                CompareOp::Equal,
                0,
            )])
            .and_then([TxnOp::put(self.key.as_str(), "", Some(put))]);
        Ok(self.client.txn(txn).await?.succeeded())
    }
}
