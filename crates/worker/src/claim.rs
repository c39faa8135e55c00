//! The claim of one unit: the requests that its worker may send to the engine while it holds the unit.

use crate::failure::failure;
use crate::pool::Port;
use std::fmt;
use std::path::PathBuf;
use tokio::sync::oneshot;
use windlass_artifact::Artifact;
use windlass_protocol::{
    Body, BodyFile, Call, Failure, Reply, ReplyTo, ResourceAsk, ResourceCall, ResourceReply, Rights,
    RoutingTarget, Unit, codes,
};
use windlass_secrets::Zeroizing;

#[derive(Clone)]
pub(crate) struct Claim {
    pub(crate) unit: Unit,
    pub(crate) port: Port,
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Claim").field(&self.unit).finish()
    }
}

impl Claim {
    /// Makes a call and returns its first reply; `None` when the call is lost.
    pub(crate) async fn call(&self, call: Call) -> Option<Reply> {
        let (reply_to, reply) = first_reply();
        (self.port)(call, reply_to);
        reply.await.ok()
    }

    pub(crate) async fn ask(&self, ask: ResourceAsk) -> Result<ResourceReply, Box<Failure>> {
        let call = Call::Resource(Box::new(ResourceCall { unit: self.unit, ask }));
        match self.call(call).await {
            Some(Reply::Resource(reply)) => match *reply {
                ResourceReply::Failed(failure) => Err(Box::new(failure)),
                ResourceReply::Stale => Err(unavailable("the work was given to another worker")),
                reply @ (ResourceReply::Rights(_)
                | ResourceReply::Secret(_)
                | ResourceReply::Artifact(_)
                | ResourceReply::Memories(_)
                | ResourceReply::RoutingKey(_)
                | ResourceReply::Stored) => Ok(reply),
            },
            Some(
                Reply::Registered(_)
                | Reply::Order(_)
                | Reply::Verdict(_)
                | Reply::Agent(_)
                | Reply::Refused(_),
            )
            | None => Err(unavailable("the engine did not answer")),
        }
    }

    /// Returns the current rights of the tenant. They are read for each use, so a withdrawn right has no effect any
    /// more.
    pub(crate) async fn rights(&self) -> Result<Rights, Box<Failure>> {
        match self.ask(ResourceAsk::GetRights).await? {
            ResourceReply::Rights(rights) => Ok(rights),
            other => Err(unexpected(&other)),
        }
    }

    pub(crate) async fn open_secret(&self, name: &str) -> Result<Zeroizing<String>, Box<Failure>> {
        match self.ask(ResourceAsk::OpenSecret { name: name.to_owned() }).await? {
            ResourceReply::Secret(value) => Ok(value.0),
            other => Err(unexpected(&other)),
        }
    }

    /// Returns the routing key of a sandbox or a route group.
    pub(crate) async fn find_routing_key(
        &self,
        target: &RoutingTarget,
    ) -> Result<Option<String>, Box<Failure>> {
        match self.ask(ResourceAsk::FindRoutingKey { target: target.clone() }).await? {
            ResourceReply::RoutingKey(key) => Ok(key),
            other => Err(unexpected(&other)),
        }
    }

    /// Returns the bytes of each key.
    pub(crate) async fn load(
        &self,
        keys: Vec<String>,
    ) -> Result<Vec<(String, Option<Vec<u8>>)>, Box<Failure>> {
        let mut loaded = Vec::with_capacity(keys.len());
        for key in keys {
            match self.ask(ResourceAsk::GetArtifact { key: key.clone() }).await? {
                ResourceReply::Artifact(body) => loaded.push((key, body.map(|body| body.bytes))),
                other => return Err(unexpected(&other)),
            }
        }
        Ok(loaded)
    }

    /// Returns a large value, in memory or as a file.
    pub(crate) async fn load_file(&self, key: &str) -> Result<Option<Body>, Box<Failure>> {
        match self.ask(ResourceAsk::GetArtifactFile { key: key.to_owned() }).await? {
            ResourceReply::Artifact(body) => Ok(body),
            other => Err(unexpected(&other)),
        }
    }

    /// Stores the content of a file, which is moved away.
    pub(crate) async fn keep_file(
        &self,
        key: String,
        length: u64,
        file: PathBuf,
    ) -> Result<(), Box<Failure>> {
        let body = Body::of_file(length, BodyFile::Moved(file));
        self.ask(ResourceAsk::PutArtifact { key, body }).await.map(drop)
    }

    /// Stores large values before they are referenced.
    pub(crate) async fn keep(&self, made: Vec<Artifact>) -> Result<(), Box<Failure>> {
        for Artifact { key, bytes } in made {
            self.ask(ResourceAsk::PutArtifact { key, body: bytes.into() }).await?;
        }
        Ok(())
    }
}

/// Returns a callback that passes the first reply on, and its receiver.
pub(crate) fn first_reply() -> (ReplyTo, oneshot::Receiver<Reply>) {
    let (sender, receiver) = oneshot::channel();
    let mut sender = Some(sender);
    (Box::new(move |reply| drop(sender.take().map(|sender| sender.send(reply)))), receiver)
}

fn unavailable(why: &str) -> Box<Failure> {
    let message = format!("{why}, so nothing can be read or stored for this step; it may be retried");
    failure(codes::ENGINE_UNAVAILABLE, message)
}

pub(crate) fn unexpected(reply: &ResourceReply) -> Box<Failure> {
    failure(codes::WORKER_DEFECT, format!("the engine sent an unexpected reply: {}", reply.kind()))
}
