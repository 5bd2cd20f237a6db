# syntax=docker/dockerfile:1
# The server alone on debian:bookworm-slim. Build: docker build -t sliceplan .   Run: docker run -p 50051:50051 sliceplan

FROM debian:bookworm AS build
WORKDIR /src
COPY scripts/install_packages.sh scripts/
RUN scripts/install_packages.sh build
COPY . .
RUN scripts/build.sh image sliceplan sliceplan-server && strip build/image/bin/*

FROM debian:bookworm-slim
LABEL org.opencontainers.image.title="sliceplan" \
      org.opencontainers.image.description="Time, memory and cost of transformer training and serving on TPU and GPU slices"
COPY scripts/install_packages.sh /tmp/
RUN /tmp/install_packages.sh runtime && rm -rf /tmp/install_packages.sh /var/lib/apt/lists/*
COPY --from=build /src/build/image/bin/sliceplan /src/build/image/bin/sliceplan-server /usr/local/bin/
USER 65532:65532
EXPOSE 50051
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/sliceplan-server"]
CMD ["--port", "50051"]
