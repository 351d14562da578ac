//! How many permits or segments a name has.

use lockkit_core::{Error, ErrorKind, Primitive, Resource, Result};

use crate::descriptor::DRIVER;
use crate::error::odd;
use crate::hall::hall_keys;
use crate::shared::Shared;
use crate::transport::{Arg, Lane};

impl Shared {
    /// See [`Backend::set_size`](lockkit_core::Backend::set_size).
    pub(crate) async fn set_size(&self, resource: &Resource, size: u32) -> Result<bool> {
        let when = match resource.primitive() {
            Primitive::Semaphore => "any",
            Primitive::Segmented => "idle",
            primitive => {
                let message = format!("a {primitive} has no size");
                return Err(Error::new(ErrorKind::InvalidArgument, message).on(DRIVER));
            }
        };
        let keys = self.prefix.keys(resource);
        let (size, inbox) = (size.to_string(), self.inbox_of(&keys));
        let args = [(&size).into(), when.into(), Arg::Run, (&inbox).into()];
        let script = &self.scripts.set_size;
        let reply = self
            .eval(Lane::Work, script, &hall_keys(&keys), &args, keys.bucket)
            .await?;
        match reply.as_int() {
            Some(changed) => Ok(changed == 1),
            None => Err(odd("a change of size")),
        }
    }
}
