# The image of worker, sandbox role and page. docker-compose.yml builds it; by hand:
#
#   docker build --tag backstay .
#   docker build --tag backstay --build-arg EXTRAS=postgres,sandbox .
#
# Nothing in it runs as root, and nothing in it can be changed by the user that runs it.
ARG PYTHON=3.13-slim-trixie

FROM python:${PYTHON} AS build
ARG EXTRAS=data,images,native,otel,postgres,review,sandbox,search,slack,web
WORKDIR /src
ENV PIP_CACHE_DIR=/var/cache/pip
COPY pyproject.toml requirements.lock deploy/locked.py ./
# Two environments: the one that builds the wheel stays behind here.
RUN python -m venv --without-pip /opt/backstay && python -m venv --without-pip /opt/builder
RUN --mount=type=cache,target=/var/cache/pip \
    python locked.py "backstay[$EXTRAS]" > runtime.txt && \
    python -m pip --python /opt/backstay/bin/python install --require-hashes --requirement runtime.txt
RUN --mount=type=cache,target=/var/cache/pip \
    python locked.py hatchling > builder.txt && \
    python -m pip --python /opt/builder/bin/python install --require-hashes --requirement builder.txt
COPY README.md LICENSE opening.py worker.py ./
COPY activities activities
COPY backstay backstay
COPY gateways gateways
COPY people people
COPY sandbox sandbox
COPY store store
COPY system system
COPY toolbox toolbox
COPY workflows workflows
RUN /opt/builder/bin/python -m hatchling build -t wheel && \
    python -m pip --python /opt/backstay/bin/python install --no-index --no-deps dist/*.whl && \
    python -m pip --python /opt/backstay/bin/python check

FROM python:${PYTHON}
LABEL org.opencontainers.image.title="backstay" org.opencontainers.image.licenses="Apache-2.0"
RUN groupadd --gid 10001 backstay && \
    useradd --uid 10001 --gid 10001 --home-dir /var/lib/backstay --no-create-home --shell /usr/sbin/nologin backstay && \
    install --directory --mode 0755 --owner 10001 --group 10001 /var/lib/backstay && \
    install --directory --mode 0700 --owner 10001 --group 10001 /var/lib/backstay-blobs && \
    install --directory --mode 0755 /etc/backstay
COPY --from=build /opt/backstay /opt/backstay
ENV PATH=/opt/backstay/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    BACKSTAY_HOME=/var/lib/backstay \
    BACKSTAY_BLOBS=/var/lib/backstay-blobs \
    BACKSTAY_TRUSTED=/etc/backstay
USER 10001:10001
WORKDIR /etc/backstay
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=20s --start-period=60s --retries=3 CMD ["backstay", "health"]
ENTRYPOINT ["backstay"]
CMD ["worker"]
