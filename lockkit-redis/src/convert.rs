//! From writer to reader, and back.

use lockkit_core::{Converted, Error, ErrorKind, Fence, HoldId, Mode, Primitive, Result};

use crate::descriptor::DRIVER;
use crate::error::odd;
use crate::hall::hall_keys;
use crate::mode::text;
use crate::shared::Shared;
use crate::transport::{Arg, Lane};

impl Shared {
    /// See [`Backend::convert`](lockkit_core::Backend::convert).
    pub(crate) async fn convert(&self, id: &HoldId, mode: Mode) -> Result<Converted> {
        let primitive = id.resource().primitive();
        if primitive != Primitive::ReadWrite || !matches!(mode, Mode::Exclusive | Mode::Shared) {
            let message = format!("a hold of a {primitive} cannot become {mode}");
            return Err(Error::new(ErrorKind::InvalidArgument, message).on(DRIVER));
        }
        let keys = self.prefix.keys(id.resource());
        let attempt = id.attempt();
        let (mode, inbox) = (text(mode), self.inbox_of(&keys));
        let args = [(&attempt).into(), (&mode).into(), Arg::Run, (&inbox).into()];
        let script = &self.scripts.convert;
        let reply = self
            .eval(Lane::Work, script, &hall_keys(&keys), &args, keys.bucket)
            .await?;
        match reply.as_int() {
            Some(fence @ 0..) => Ok(Converted::Done(Fence::new(fence.unsigned_abs()))),
            Some(-1) => Ok(Converted::Busy),
            Some(-2) => Ok(Converted::NotHeld),
            _ => Err(odd("a conversion")),
        }
    }
}
