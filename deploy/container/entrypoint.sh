#!/bin/bash
# What Spark on Kubernetes asks of an image: `driver ARGUMENTS...` and `executor`, with settings in the environment.
# All else is a command.
set -euo pipefail

case "${1-}" in
driver)
    shift
    set -- "$SPARK_HOME/bin/spark-submit" --deploy-mode client \
        --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" "$@"
    ;;
executor)
    classpath="${SPARK_CONF_DIR:-$SPARK_HOME/conf}:$SPARK_HOME/jars/*"
    for more in "${SPARK_EXTRA_CLASSPATH-}" "${SPARK_CLASSPATH-}" "${HADOOP_CONF_DIR-}"; do
        classpath+="${more:+:$more}"
    done
    # Options of Java come as SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1, ...
    options=()
    for ((number = 0; ; number++)); do
        name="SPARK_JAVA_OPT_$number"
        [[ -v $name ]] || break
        options+=("${!name}")
    done
    set -- "${JAVA_HOME:+$JAVA_HOME/bin/}java" "${options[@]}" \
        "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" -cp "$classpath" \
        org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
        --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
        --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
        --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME"
    ;;
esac
exec "$@"
