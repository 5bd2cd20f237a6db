# The server, the command and what they need at run time; nothing else. docker build -t sliceplan .
#
# Releases give the bases by digest, as every base is a Debian 12: --build-arg BASE=debian:bookworm@sha256:...
# deploy/prove_image.sh builds the same file on a Debian that debootstrap has made, and runs the result.
ARG BASE=debian:bookworm
ARG RUNTIME_BASE=debian:bookworm-slim

FROM ${BASE} AS build
WORKDIR /opt/sliceplan
# Apart, so that a change of the sources installs nothing again.
COPY scripts/install_packages.sh scripts/
RUN scripts/install_packages.sh build
COPY . .
RUN scripts/build.sh image sliceplan sliceplan-server && strip build/image/bin/sliceplan build/image/bin/sliceplan-server

FROM ${RUNTIME_BASE}
ARG VERSION=unreleased
ARG REVISION=unknown
LABEL org.opencontainers.image.title="sliceplan" \
      org.opencontainers.image.description="Time, memory and cost of transformer training and serving on TPU and GPU slices" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY scripts/install_packages.sh /tmp/
RUN /tmp/install_packages.sh runtime && rm -rf /tmp/install_packages.sh /var/lib/apt/lists/* /var/cache/apt/* /var/log/*
COPY --from=build /opt/sliceplan/build/image/bin/sliceplan /opt/sliceplan/build/image/bin/sliceplan-server /usr/local/bin/
# A number, so that Kubernetes can tell that it is not root. Nothing is written: the root may be read-only.
USER 65532:65532
EXPOSE 8080 8081
STOPSIGNAL SIGTERM
# Probes are Kubernetes' own, on the HTTP port.
HEALTHCHECK NONE
ENTRYPOINT ["/usr/local/bin/sliceplan-server"]
# Beyond the container only with TLS or with --insecure_any_address: deploy/kustomize has both.
CMD ["--port=8080"]
