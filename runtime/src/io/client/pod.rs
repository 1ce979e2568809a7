//! Connection of an agent in a pod to the API server of its own cluster, with the pod's service account.

use std::path::{Path, PathBuf};

use kube::Config;

use super::settings::parse_authorities;

/// Mount point of a service account's token and certificate authority in a pod.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Environment variable with the address of the API server. The kubelet sets this variable in each container.
const HOST: &str = "KUBERNETES_SERVICE_HOST";
const PORT: &str = "KUBERNETES_SERVICE_PORT";

/// In-cluster settings of a pod. Like `kube::Config::incluster`, but a test can pass other paths and addresses.
#[derive(Clone, Debug)]
pub struct Pod {
    /// Folder with `token` and `ca.crt`.
    pub service_account: PathBuf,
    /// Address or name of the API server.
    pub host: Option<String>,
    pub port: Option<String>,
}

impl Pod {
    /// Returns the settings of the pod that this process runs in. The host and port are `None` outside of a pod.
    #[must_use]
    pub fn here() -> Self {
        Self { service_account: SERVICE_ACCOUNT.into(), host: std::env::var(HOST).ok(), port: std::env::var(PORT).ok() }
    }

    /// Returns kube's configuration for this pod. The error names the variable or the file that is missing or
    /// malformed.
    pub(super) fn config(&self) -> Result<Config, String> {
        let host = set(HOST, self.host.as_deref())?;
        let written = set(PORT, self.port.as_deref())?;
        let port: u16 = written.parse().map_err(|_| format!("{PORT} {written:?} is not a port"))?;
        // An IPv6 address has colons, so brackets must enclose it in a URL.
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let url = format!("https://{host}:{port}");
        let mut config = Config::new(url.parse().map_err(|error| format!("{HOST}: {url:?}: {error}"))?);
        let authority = self.service_account.join("ca.crt");
        config.root_cert = Some(authorities(&authority)?);
        // kube reads both files again while the agent runs, because the authority and the token rotate.
        config.root_cert_file = Some(authority);
        config.auth_info.token_file = Some(self.service_account.join("token").to_string_lossy().into_owned());
        Ok(config)
    }
}

fn set<'a>(name: &str, value: Option<&'a str>) -> Result<&'a str, String> {
    value.filter(|value| !value.is_empty()).ok_or_else(|| format!("{name} is not set"))
}

fn authorities(file: &Path) -> Result<Vec<Vec<u8>>, String> {
    let pem = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    parse_authorities(&pem).map_err(|why| format!("{}: {why}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AUTHORITY: &str = "-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n";

    fn pod(folder: &Path, host: &str, port: &str) -> Pod {
        let set = |value: &str| (!value.is_empty()).then(|| value.to_owned());
        Pod { service_account: folder.to_owned(), host: set(host), port: set(port) }
    }

    #[test]
    fn a_pod_reaches_its_cluster_by_the_environment_and_its_service_account() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.crt"), AUTHORITY).unwrap();
        let table = [
            ("10.96.0.1", "443", "https://10.96.0.1:443/"),
            ("fd00::1", "6443", "https://[fd00::1]:6443/"),
            ("api.example", "6443", "https://api.example:6443/"),
        ];
        for (host, port, url) in table {
            let config = pod(folder.path(), host, port).config().unwrap();
            assert_eq!(config.cluster_url.to_string(), url);
            assert_eq!(config.root_cert, Some(vec![vec![1, 2, 3]]));
            assert_eq!(config.root_cert_file, Some(folder.path().join("ca.crt")));
            // The configuration names the token file without reading the file, because the file may not exist yet.
            assert_eq!(config.auth_info.token_file.as_deref(), folder.path().join("token").to_str());
            assert!(!config.accept_invalid_certs);
        }
    }

    #[test]
    fn what_a_pod_lacks_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let why = |host, port| pod(folder.path(), host, port).config().unwrap_err();
        assert_eq!(why("", "443"), "KUBERNETES_SERVICE_HOST is not set");
        assert_eq!(why("10.96.0.1", ""), "KUBERNETES_SERVICE_PORT is not set");
        assert_eq!(why("10.96.0.1", "https"), "KUBERNETES_SERVICE_PORT \"https\" is not a port");
        assert!(why("a b", "443").starts_with("KUBERNETES_SERVICE_HOST: \"https://a b:443\": "));
        let file = folder.path().join("ca.crt");
        assert!(why("10.96.0.1", "443").starts_with(&format!("{}: ", file.display())));
        std::fs::write(&file, "no certificate").unwrap();
        assert_eq!(why("10.96.0.1", "443"), format!("{}: it contains no PEM certificate", file.display()));
    }
}
