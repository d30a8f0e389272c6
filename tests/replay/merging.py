"""Hand a run two workflow tasks at once, as the SDK may do where it has lost its cache; a replay hands over each."""

from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.worker import UnsandboxedWorkflowRunner, WorkflowInstance, WorkflowInstanceDetails


class MergingRunner(UnsandboxedWorkflowRunner):
    """Hold back that people were told, which asks for nothing, until what comes next."""

    def __init__(self) -> None:
        self.merged: list[list[str]] = []
        """What was handed over at once."""

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        instance = super().create_instance(det)
        whole, told, held = instance.activate, set[int](), WorkflowActivation()

        def activate(given: WorkflowActivation) -> WorkflowActivationCompletion:
            jobs = list(given.jobs)
            if not held.jobs and [job.resolve_activity.seq in told for job in jobs] == [True]:
                held.jobs.extend(jobs)
                completion = WorkflowActivationCompletion()
                completion.successful.SetInParent()
                return completion
            if held.jobs:
                given.jobs.extend(held.jobs)
                del held.jobs[:]
                self.merged.append([job.WhichOneof("variant") or "" for job in given.jobs])
            completion = whole(given)
            for command in completion.successful.commands:
                if command.schedule_activity.activity_type == "announce":
                    told.add(command.schedule_activity.seq)
            return completion

        instance.activate = activate
        return instance
