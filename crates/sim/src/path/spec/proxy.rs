//! The keys of a proxy that splits connections.

use std::sync::Arc;

use slowstart::registry;
use slowstart::units::Bytes;

use super::super::error::PathError;
use super::super::quantity;
use super::PathSpec;
use super::keys::Keys;
use crate::suggest::did_you_mean;

/// A proxy between the server and the path: the server's connection ends there, and another leads to the
/// client.
#[derive(Clone, Debug)]
pub struct ProxySpec {
    /// The path from the server to the proxy.
    pub leg: PathSpec,
    /// The bytes that may wait in the proxy, those on their way to the client included.
    pub buffer: Bytes,
    /// The startup of the proxy's own connection, a name of the registry.
    pub startup: &'static str,
}

/// What a value of `proxy` looks like.
pub(super) const LEG: &str = "the path from the server to the proxy: a built-in path, a file, or keys of a path, without a proxy of its own";
/// What a value of `proxy_buffer` looks like.
pub(super) const BUFFER: &str = "an amount of at least 64kB, such as 16MB";
/// What a value of `proxy_startup` looks like.
pub(super) const STARTUP: &str = "the name of a startup, such as hybla";

impl Keys {
    /// Reads the proxy, if there is one.
    pub(super) fn proxy(&mut self) -> Result<Option<Arc<ProxySpec>>, PathError> {
        let Some(text) = self.values.remove("proxy") else {
            for key in ["proxy_buffer", "proxy_startup"] {
                if let Some(found) = self.values.get(key) {
                    return Err(self.wrong(key, found, "proxy with it"));
                }
            }
            return Ok(None);
        };
        let leg = PathSpec::load_from(&text, &self.files)
            .map_err(|why| PathError::Proxy { source_name: self.source.clone(), why: Box::new(why) })?;
        if leg.proxy.is_some() {
            return Err(self.wrong("proxy", &text, LEG));
        }
        let least = Bytes(64_000);
        let buffer = self.take("proxy_buffer", |t| quantity::bytes(t).filter(|b| *b >= least), BUFFER)?;
        let buffer = buffer.ok_or_else(|| self.missing("proxy_buffer", BUFFER))?;
        let name = self.values.remove("proxy_startup").unwrap_or_else(|| "hystart".into());
        let entry = registry::named(&name).ok_or_else(|| {
            let names: Vec<&str> = registry::all().map(|e| e.name).collect();
            self.wrong("proxy_startup", &name, &format!("{STARTUP}{}", did_you_mean(&name, &names)))
        })?;
        Ok(Some(Arc::new(ProxySpec { leg, buffer, startup: entry.name })))
    }
}
