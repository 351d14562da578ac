//! A certificate authority to throw away.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use tempfile::TempDir;

/// Signs certificates of servers and clients for as long as it lives; its files go with it.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    directory: TempDir,
    issued: AtomicU32,
}

/// A certificate and its key, as PEM files in the directory of the [`Authority`].
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl Authority {
    /// Makes one with a new key.
    ///
    /// # Errors
    ///
    /// If its directory cannot be made.
    pub fn new() -> Result<Self> {
        let mut params = CertificateParams::new([])?;
        params
            .distinguished_name
            .push(DnType::CommonName, "lockkit test authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate()?;
        let directory = tempfile::Builder::new()
            .prefix("lockkit-authority-")
            .tempdir()?;
        fs::write(
            directory.path().join("ca.pem"),
            params.self_signed(&key)?.pem(),
        )?;
        Ok(Self {
            issuer: Issuer::new(params, key),
            directory,
            issued: AtomicU32::new(0),
        })
    }

    /// Its own certificate, which clients and servers have to trust.
    #[must_use]
    pub fn ca(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }

    /// Where all of its files are.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A certificate for a server on this machine: `localhost`, `127.0.0.1` and `::1`.
    ///
    /// # Errors
    ///
    /// If the files cannot be written.
    pub fn server(&self) -> Result<Certificate> {
        self.server_for(&["localhost", "127.0.0.1", "::1"])
    }

    /// A certificate for a server with these names and addresses.
    ///
    /// # Errors
    ///
    /// If the files cannot be written, or a name cannot stand in a certificate.
    pub fn server_for(&self, names: &[&str]) -> Result<Certificate> {
        self.issue(
            "server",
            params(names, ExtendedKeyUsagePurpose::ServerAuth)?,
        )
    }

    /// A certificate for a server on this machine that has expired long ago.
    ///
    /// # Errors
    ///
    /// If the files cannot be written.
    pub fn expired_server(&self) -> Result<Certificate> {
        let names = ["localhost", "127.0.0.1", "::1"];
        let mut params = params(&names, ExtendedKeyUsagePurpose::ServerAuth)?;
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(2002, 1, 1);
        self.issue("expired", params)
    }

    /// A certificate for a client of this name.
    ///
    /// # Errors
    ///
    /// If the files cannot be written.
    pub fn client(&self, name: &str) -> Result<Certificate> {
        let mut params = params(&[], ExtendedKeyUsagePurpose::ClientAuth)?;
        params.distinguished_name.push(DnType::CommonName, name);
        self.issue("client", params)
    }

    fn issue(&self, kind: &str, params: CertificateParams) -> Result<Certificate> {
        let number = self.issued.fetch_add(1, Ordering::Relaxed);
        let file = |ending| {
            self.directory
                .path()
                .join(format!("{kind}-{number}.{ending}"))
        };
        let (certificate, key) = (file("pem"), file("key"));
        let pair = KeyPair::generate()?;
        fs::write(&certificate, params.signed_by(&pair, &self.issuer)?.pem())?;
        fs::write(&key, pair.serialize_pem())?;
        Ok(Certificate { certificate, key })
    }
}

fn params(names: &[&str], purpose: ExtendedKeyUsagePurpose) -> Result<CertificateParams> {
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names)?;
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![purpose];
    Ok(params)
}
