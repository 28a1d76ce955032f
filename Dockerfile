# The runtime image: rustqueued and what measures it, built from this tree and Debian 12 packages alone.
#   docker build -t rustqueue:dev .        or, where no engine is at hand: scripts/image (the same steps in chroots)
FROM debian:bookworm-slim AS build
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends \
      g++ cmake ninja-build mold libasio-dev libboost1.81-dev libboost-json1.81-dev libssl-dev libfmt-dev libexpected-dev libisal-dev \
      libsnappy-dev zlib1g-dev libre2-dev libtomlplusplus-dev libcli11-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN cmake --preset release && cmake --build build/release --target rustqueued rustqueue-bench rustqueue-qualify

FROM debian:bookworm-slim
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends \
      ca-certificates curl libboost-json1.81.0 libfmt9 libgcc-s1 libisal2 libre2-9 libsnappy1v5 libssl3 libstdc++6 zlib1g \
    && rm -rf /var/lib/apt/lists/*
RUN mkdir /data && chown 65532:65532 /data
COPY --from=build /src/build/release/bin/rustqueued /src/build/release/bin/rustqueue-bench /src/build/release/bin/rustqueue-qualify /usr/local/bin/
COPY rustqueued.example.toml /etc/rustqueue/rustqueue.toml
USER 65532:65532
# NSQ and HTTP. The last two are Discovery's and the Console's, which are no part of this tree; the image's contract names them.
EXPOSE 4150 4151 4161 4180
ENTRYPOINT ["/usr/local/bin/rustqueued"]
CMD ["--config", "/etc/rustqueue/rustqueue.toml"]
