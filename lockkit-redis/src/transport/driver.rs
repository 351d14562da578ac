//! The client library, `redis`, as a [`Transport`]: the only file that calls it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, ConnectionInfo, IntoConnectionInfo, ProtocolVersion, PushInfo,
    PushKind, RedisConnectionInfo, RedisError, Value,
};

use super::endpoint::{Address, Endpoint};
use super::request::{Failure, Push, Reply, Request};
use super::{Ear, Transport};

/// Requests that may wait for the socket before senders have to: the library's 50 are few for a
/// thousand tasks on one connection.
const BUFFER: usize = 4096;

/// One connection.
pub(super) struct Driver(MultiplexedConnection);

/// Connects, with RESP3, so that answers and messages share one connection.
pub(super) async fn connect(
    endpoint: &Endpoint,
    timeout: Duration,
    ear: Ear,
) -> Result<Arc<dyn Transport>, Failure> {
    let client = client(endpoint).map_err(failed)?;
    let hear = move |push: PushInfo| -> Result<(), std::convert::Infallible> {
        if let Some(push) = heard(push) {
            ear(push);
        }
        Ok(())
    };
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(timeout))
        // Each request is bounded where it is made.
        .set_response_timeout(None)
        .set_pipeline_buffer_size(BUFFER)
        .set_push_sender(hear);
    let connection = client.get_multiplexed_async_connection_with_config(&config);
    Ok(Arc::new(Driver(connection.await.map_err(failed)?)))
}

fn client(endpoint: &Endpoint) -> Result<Client, RedisError> {
    let mut login = RedisConnectionInfo::default()
        .set_protocol(ProtocolVersion::RESP3)
        .set_lib_name("lockkit", env!("CARGO_PKG_VERSION"))
        .set_db(endpoint.database);
    if let Some(user) = &endpoint.login.user {
        login = login.set_username(user);
    }
    if let Some(password) = &endpoint.login.password {
        login = login.set_password(password.reveal());
    }
    let info: ConnectionInfo = endpoint.library_address().into_connection_info()?;
    let info = info
        .set_redis_settings(login)
        .set_tcp_settings(TcpSettings::default().set_nodelay(true));
    #[cfg(feature = "tls")]
    if let (Address::Tls { .. }, certificates) = (&endpoint.address, &endpoint.certificates) {
        // The process may have chosen another one; any will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        return Client::build_with_tls(info, certificates.for_library());
    }
    Client::open(info)
}

impl Endpoint {
    fn library_address(&self) -> redis::ConnectionAddr {
        match &self.address {
            Address::Tcp { host, port } => redis::ConnectionAddr::Tcp(host.clone(), *port),
            #[cfg(feature = "tls")]
            Address::Tls { host, port } => redis::ConnectionAddr::TcpTls {
                host: host.clone(),
                port: *port,
                insecure: false,
                tls_params: None,
            },
            Address::Unix(path) => redis::ConnectionAddr::Unix(path.clone()),
        }
    }
}

#[async_trait]
impl Transport for Driver {
    async fn send(&self, request: &Request) -> Result<Reply, Failure> {
        let mut connection = self.0.clone();
        reply(
            connection
                .send_packed_command(&request.0)
                .await
                .map_err(failed)?,
        )
    }

    async fn send_all(&self, requests: &[Request]) -> Result<Vec<Result<Reply, Failure>>, Failure> {
        let mut pipeline = redis::pipe();
        for request in requests {
            pipeline.add_command(request.0.clone());
        }
        let mut connection = self.0.clone();
        let sent = connection.send_packed_commands(&pipeline, 0, requests.len());
        Ok(sent.await.map_err(failed)?.into_iter().map(reply).collect())
    }

    async fn subscribe(&self, channel: &str, sharded: bool) -> Result<(), Failure> {
        let mut connection = self.0.clone();
        if sharded {
            // The library has no call for it on a connection of this kind; the confirmation is a
            // push, which it counts as the reply of a plain request.
            let request = Request::new("SSUBSCRIBE").arg(channel);
            return self.send(&request).await.map(drop);
        }
        connection.subscribe(channel).await.map_err(failed)
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

fn reply(value: Value) -> Result<Reply, Failure> {
    let array = |items: Vec<Value>| items.into_iter().map(reply).collect::<Result<_, _>>();
    Ok(match value {
        Value::Nil => Reply::Nil,
        Value::Int(number) => Reply::Int(number),
        Value::Boolean(yes) => Reply::Int(yes.into()),
        Value::BulkString(bytes) => Reply::Bytes(bytes),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => {
            Reply::Bytes(text.into_bytes())
        }
        Value::Okay => Reply::Bytes(b"OK".to_vec()),
        Value::Double(number) => Reply::Bytes(number.to_string().into_bytes()),
        Value::Array(items) | Value::Set(items) | Value::Push { data: items, .. } => {
            Reply::Array(array(items)?)
        }
        Value::Map(pairs) => Reply::Array(array(
            pairs.into_iter().flat_map(<[Value; 2]>::from).collect(),
        )?),
        Value::Attribute { data, .. } => reply(*data)?,
        Value::ServerError(error) => return Err(failed(error.into())),
        other => {
            let kind = format!("{other:?}");
            let kind = kind.split(['(', ' ', '{']).next().unwrap_or_default();
            return Err(Failure::Broken(format!(
                "an answer of an unknown kind, {kind}"
            )));
        }
    })
}

fn failed(error: RedisError) -> Failure {
    if let (Some(code), false) = (error.code(), error.is_io_error()) {
        let detail = error.detail().unwrap_or_default();
        return Failure::Refused {
            code: inner_code(code, detail).to_owned(),
            detail: detail.to_owned(),
        };
    }
    if error.kind() == redis::ErrorKind::AuthenticationFailed {
        return Failure::Refused {
            code: "WRONGPASS".into(),
            detail: error
                .detail()
                .unwrap_or("the server refused the password")
                .to_owned(),
        };
    }
    Failure::Broken(error.to_string())
}

/// The code of an error inside a script: servers wrap what a script raises in an error of their own,
/// and before 7.0 also what a command in it refuses: `ERR Error running script (call to f_…):
/// @user_script:1: WRONGTYPE …`, and with a dash what is refused before the command runs.
fn inner_code<'a>(code: &'a str, detail: &str) -> &'a str {
    const WRAPPED: [&str; 7] = [
        "WRONGTYPE",
        "CORRUPT",
        "OOM",
        "NOPERM",
        "READONLY",
        "MISCONF",
        "NOREPLICAS",
    ];
    if code != "ERR" {
        return code;
    }
    // In a script, a right that is missing has no code.
    if detail.contains("The user executing the script can't") {
        return "NOPERM";
    }
    let is_in = |wrapped: &&str| {
        detail.starts_with(&format!("{wrapped} "))
            || detail.contains(&format!(": {wrapped} "))
            || detail.contains(&format!(": -{wrapped} "))
    };
    WRAPPED.into_iter().find(is_in).unwrap_or(code)
}

fn heard(push: PushInfo) -> Option<Push> {
    match push.kind {
        PushKind::Message | PushKind::SMessage => match push.data.into_iter().nth(1) {
            Some(Value::BulkString(message)) => Some(Push::Message(message)),
            _ => None,
        },
        PushKind::SUnsubscribe => Some(Push::Unsubscribed),
        PushKind::Disconnection => Some(Push::Disconnected),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_inside_a_script_keeps_its_code() {
        let wrapped = "Error running script (call to f_6b1b): @user_script:7: ";
        for detail in [
            "READONLY You can't write against a read only replica.".to_owned(),
            format!("{wrapped}READONLY You can't write against a read only replica."),
            format!(
                "{wrapped}@user_script: 7: -READONLY You can't write against a read only replica."
            ),
        ] {
            assert_eq!(inner_code("ERR", &detail), "READONLY", "{detail}");
        }
        assert_eq!(inner_code("ERR", "unknown command 'READONLY '"), "ERR");
        assert_eq!(inner_code("WRONGPASS", "CORRUPT x"), "WRONGPASS");
    }
}
