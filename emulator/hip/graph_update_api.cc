// New parameters for graphs: of one node of a graph or of an executable graph, and of a whole
// executable graph from another graph of the same shape. Launches in flight keep the old ones.
#include <algorithm>
#include <functional>

#include "emulator/hip/api_call.h"
#include "emulator/hip/graph.h"
#include "emulator/hip/graph_work.h"

namespace flydsl::emu::hip {
namespace {

using Make = std::function<hipError_t(Work *)>;

const char *name_of(hipGraphNodeType type) {
  switch (type) {
    case hipGraphNodeTypeKernel:
      return "kernel";
    case hipGraphNodeTypeMemcpy:
      return "copy";
    case hipGraphNodeTypeMemset:
      return "fill";
    case hipGraphNodeTypeHost:
      return "host";
    case hipGraphNodeTypeGraph:
      return "graph";
    case hipGraphNodeTypeEmpty:
      return "empty";
  }
  return "unknown";
}

hipError_t replace(Work *work, const Make &make) {
  Work next;
  const hipError_t error = make(&next);
  if (error != hipSuccess) return error;
  if (work->type != next.type)
    return fail(hipErrorInvalidValue, "parameters of a %s node for a %s node", name_of(next.type),
                name_of(work->type));
  *work = std::move(next);
  return hipSuccess;
}

hipError_t set_in_graph(hipGraphNode_t handle, const Make &make) {
  for (const std::shared_ptr<Graph> &graph : graphs().all()) {
    std::lock_guard<std::mutex> lock(graph->mutex);
    for (const std::shared_ptr<GraphNode> &node : graph->nodes)
      if (static_cast<const void *>(node.get()) == handle) return replace(&node->work, make);
  }
  return fail(hipErrorInvalidValue, "graph node %p does not exist", static_cast<void *>(handle));
}

hipError_t set_in_exec(hipGraphExec_t exec_handle, hipGraphNode_t handle, const Make &make) {
  hipError_t error = hipSuccess;
  const std::shared_ptr<GraphExec> exec = graph_exec_or_fail(exec_handle, &error);
  if (!exec) return error;
  std::lock_guard<std::mutex> lock(exec->mutex);
  for (GraphExec::Node &node : exec->nodes) {
    if (static_cast<const void *>(node.original.get()) != handle) continue;
    error = replace(&node.work, make);
    exec->refresh();
    return error;
  }
  return fail(hipErrorInvalidValue, "graph node %p is none of the graph that was instantiated",
              static_cast<void *>(handle));
}

struct Difference {
  hipGraphExecUpdateResult result = hipGraphExecUpdateSuccess;
  const GraphNode *node = nullptr;  // of the new graph
};

// Nodes correspond by the order in which they were added.
Difference difference(const std::vector<GraphExec::Node> &old,
                      const std::vector<GraphExec::Node> &next) {
  for (size_t i = 0; i < std::min(old.size(), next.size()); ++i) {
    if (old[i].work.type != next[i].work.type)
      return {hipGraphExecUpdateErrorNodeTypeChanged, next[i].original.get()};
    if (old[i].after != next[i].after)
      return {hipGraphExecUpdateErrorTopologyChanged, next[i].original.get()};
  }
  if (old.size() != next.size()) return {hipGraphExecUpdateErrorTopologyChanged, nullptr};
  return {};
}

hipError_t update(hipGraphExec_t exec_handle, hipGraph_t graph_handle, hipGraphNode_t *error_node,
                  hipGraphExecUpdateResult *result) {
  if (result == nullptr) return fail(hipErrorInvalidValue, "the result is null");
  *result = hipGraphExecUpdateError;
  if (error_node != nullptr) *error_node = nullptr;
  hipError_t error = hipSuccess;
  const std::shared_ptr<GraphExec> exec = graph_exec_or_fail(exec_handle, &error);
  if (!exec) return error;
  const std::shared_ptr<GraphExec> next = instantiated(graph_handle, &error);
  if (!next) return error;
  std::lock_guard<std::mutex> lock(exec->mutex);
  const Difference found = difference(exec->nodes, next->nodes);
  *result = found.result;
  if (found.result != hipGraphExecUpdateSuccess) {
    if (error_node != nullptr)
      *error_node = reinterpret_cast<hipGraphNode_t>(const_cast<GraphNode *>(found.node));
    return fail(hipErrorGraphExecUpdateFailure,
                found.result == hipGraphExecUpdateErrorNodeTypeChanged
                    ? "a node is of another type"
                    : "nodes or the edges between them differ");
  }
  for (size_t i = 0; i < exec->nodes.size(); ++i)
    exec->nodes[i].work = std::move(next->nodes[i].work);
  exec->refresh();
  return hipSuccess;
}

}  // namespace
}  // namespace flydsl::emu::hip

using namespace flydsl::emu::hip;

FLYDSL_EMU_EXPORT hipError_t hipGraphKernelNodeSetParams(hipGraphNode_t node,
                                                         const hipKernelNodeParams *parameters) {
  return api_call([&] {
    return set_in_graph(node, [&](Work *work) { return make_kernel_work(parameters, work); });
  });
}

FLYDSL_EMU_EXPORT hipError_t hipGraphMemsetNodeSetParams(hipGraphNode_t node,
                                                         const hipMemsetParams *parameters) {
  return api_call([&] {
    return set_in_graph(node, [&](Work *work) { return make_fill_work(parameters, work); });
  });
}

FLYDSL_EMU_EXPORT hipError_t hipGraphMemcpyNodeSetParams(hipGraphNode_t node,
                                                         const hipMemcpy3DParms *parameters) {
  return api_call([&] {
    return set_in_graph(node, [&](Work *work) { return make_copy_work(parameters, work); });
  });
}

FLYDSL_EMU_EXPORT hipError_t hipGraphMemcpyNodeSetParams1D(hipGraphNode_t node, void *to,
                                                           const void *from, size_t bytes,
                                                           hipMemcpyKind kind) {
  return api_call([&] {
    return set_in_graph(node,
                        [&](Work *work) { return make_copy_work(to, from, bytes, kind, work); });
  });
}

FLYDSL_EMU_EXPORT hipError_t hipGraphHostNodeSetParams(hipGraphNode_t node,
                                                       const hipHostNodeParams *parameters) {
  return api_call([&] {
    return set_in_graph(node, [&](Work *work) { return make_host_work(parameters, work); });
  });
}

FLYDSL_EMU_EXPORT hipError_t hipGraphExecKernelNodeSetParams(
    hipGraphExec_t exec, hipGraphNode_t node, const hipKernelNodeParams *parameters) {
  return api_call([&] {
    return set_in_exec(exec, node, [&](Work *work) { return make_kernel_work(parameters, work); });
  });
}

FLYDSL_EMU_EXPORT hipError_t hipGraphExecMemsetNodeSetParams(hipGraphExec_t exec,
                                                             hipGraphNode_t node,
                                                             const hipMemsetParams *parameters) {
  return api_call([&] {
    return set_in_exec(exec, node, [&](Work *work) { return make_fill_work(parameters, work); });
  });
}

FLYDSL_EMU_EXPORT hipError_t hipGraphExecMemcpyNodeSetParams(hipGraphExec_t exec,
                                                             hipGraphNode_t node,
                                                             hipMemcpy3DParms *parameters) {
  return api_call([&] {
    return set_in_exec(exec, node, [&](Work *work) { return make_copy_work(parameters, work); });
  });
}

FLYDSL_EMU_EXPORT hipError_t hipGraphExecMemcpyNodeSetParams1D(hipGraphExec_t exec,
                                                               hipGraphNode_t node, void *to,
                                                               const void *from, size_t bytes,
                                                               hipMemcpyKind kind) {
  return api_call([&] {
    return set_in_exec(exec, node,
                       [&](Work *work) { return make_copy_work(to, from, bytes, kind, work); });
  });
}

FLYDSL_EMU_EXPORT hipError_t hipGraphExecHostNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                                           const hipHostNodeParams *parameters) {
  return api_call([&] {
    return set_in_exec(exec, node, [&](Work *work) { return make_host_work(parameters, work); });
  });
}

FLYDSL_EMU_EXPORT hipError_t hipGraphExecUpdate(hipGraphExec_t exec, hipGraph_t graph,
                                                hipGraphNode_t *error_node,
                                                hipGraphExecUpdateResult *result) {
  return api_call([&] { return update(exec, graph, error_node, result); });
}
