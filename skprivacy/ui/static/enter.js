// Keeps the secret of this session for this tab, and leaves the token behind.
sessionStorage.setItem("secret", document.querySelector("meta[name=secret]").content);
location.replace("/");
