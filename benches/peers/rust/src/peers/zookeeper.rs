//! Locks in ZooKeeper.

use anyhow::Result;
use zookeeper_client::{Acls, Client, CreateMode, LockOptions, LockPrefix, OwnedLockClient};

use super::{Peer, Task, held};
use crate::options::Options;

const ACL: Acls<'static> = Acls::anyone_all();
const ROOT: &str = "/bench";

async fn connect(options: &Options) -> Result<Client> {
    Ok(Client::connector()
        .with_session_timeout(options.ttl)
        .connect(&options.server)
        .await?)
}

/// zookeeper-client's own recipe. Unlock is dropping the guard, which deletes the node in the background.
pub(crate) struct Recipe(Client);

pub(crate) struct RecipeTask {
    client: Client,
    directory: String,
    guard: Option<OwnedLockClient>,
}

impl Peer for Recipe {
    type Task = RecipeTask;
    async fn connect(options: &Options) -> Result<Self> {
        Ok(Self(connect(options).await?))
    }
    async fn task(&self, key: &str) -> Result<RecipeTask> {
        Ok(RecipeTask {
            client: self.0.clone(),
            directory: format!("{ROOT}/{key}"),
            guard: None,
        })
    }
}

impl Task for RecipeTask {
    async fn lock(&mut self) -> Result<()> {
        let prefix = LockPrefix::new_curator(&self.directory, "lock-")?;
        let options =
            LockOptions::new(ACL).with_ancestor_options(CreateMode::Persistent.with_acls(ACL))?;
        self.guard = Some(self.client.lock(prefix, b"", options).await?.into_owned());
        Ok(())
    }
    async fn unlock(&mut self) -> Result<()> {
        drop(held(&mut self.guard)?);
        Ok(())
    }
}

/// The least that a ZooKeeper lock can send. It cannot wait.
pub(crate) struct Floor(Client);

pub(crate) struct FloorTask {
    client: Client,
    path: String,
}

impl Peer for Floor {
    type Task = FloorTask;
    async fn connect(options: &Options) -> Result<Self> {
        let client = connect(options).await?;
        client
            .mkdir(ROOT, &CreateMode::Persistent.with_acls(ACL))
            .await?;
        Ok(Self(client))
    }
    async fn task(&self, key: &str) -> Result<FloorTask> {
        Ok(FloorTask {
            client: self.0.clone(),
            path: format!("{ROOT}/floor-{key}"),
        })
    }
}

impl Task for FloorTask {
    async fn lock(&mut self) -> Result<()> {
        self.client
            .create(&self.path, b"", &CreateMode::Ephemeral.with_acls(ACL))
            .await?;
        Ok(())
    }
    async fn unlock(&mut self) -> Result<()> {
        Ok(self.client.delete(&self.path, None).await?)
    }
}
