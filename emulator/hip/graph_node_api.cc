// hipGraphAdd*: nodes added by hand.
#include <algorithm>

#include "emulator/hip/api_call.h"
#include "emulator/hip/graph.h"
#include "emulator/hip/graph_work.h"

namespace flydsl::emu::hip {
namespace {

bool has(const Graph &graph, const void *handle) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [&](const auto &node) { return node.get() == handle; });
}

// Where a node goes: into which graph, behind which nodes.
struct Place {
  hipGraphNode_t *result;
  hipGraph_t graph;
  const hipGraphNode_t *after;
  size_t after_count;
};

hipError_t add(const Place &place, Work work) {
  if (place.result == nullptr || (place.after == nullptr && place.after_count != 0))
    return fail(hipErrorInvalidValue, "the result or the dependencies are null");
  hipError_t error = hipSuccess;
  const std::shared_ptr<Graph> graph = graph_or_fail(place.graph, &error);
  if (!graph) return error;
  std::vector<GraphNode *> after;
  {
    std::lock_guard<std::mutex> lock(graph->mutex);
    for (size_t i = 0; i < place.after_count; ++i) {
      if (!has(*graph, place.after[i]))
        return fail(hipErrorInvalidValue, "dependency %zu is no node of this graph", i);
      after.push_back(reinterpret_cast<GraphNode *>(place.after[i]));
    }
  }
  GraphNode *const node = graph->add(std::move(work), after);
  std::lock_guard<std::mutex> lock(graph->mutex);
  for (const auto &known : graph->nodes)
    if (known.get() == node) graph_nodes().add(known);
  *place.result = reinterpret_cast<hipGraphNode_t>(node);
  return hipSuccess;
}

hipError_t add(const Place &place, hipError_t error, Work *work) {
  return error == hipSuccess ? add(place, std::move(*work)) : error;
}

}  // namespace
}  // namespace flydsl::emu::hip

using namespace flydsl::emu::hip;

FLYDSL_EMU_EXPORT hipError_t hipGraphAddKernelNode(hipGraphNode_t *node, hipGraph_t graph,
                                                   const hipGraphNode_t *after, size_t after_count,
                                                   const hipKernelNodeParams *parameters) {
  return api_call([&] {
    Work work;
    return add({node, graph, after, after_count}, make_kernel_work(parameters, &work), &work);
  });
}

FLYDSL_EMU_EXPORT hipError_t hipGraphAddMemsetNode(hipGraphNode_t *node, hipGraph_t graph,
                                                   const hipGraphNode_t *after, size_t after_count,
                                                   const hipMemsetParams *parameters) {
  return api_call([&] {
    Work work;
    return add({node, graph, after, after_count}, make_fill_work(parameters, &work), &work);
  });
}

FLYDSL_EMU_EXPORT hipError_t hipGraphAddMemcpyNode(hipGraphNode_t *node, hipGraph_t graph,
                                                   const hipGraphNode_t *after, size_t after_count,
                                                   const hipMemcpy3DParms *parameters) {
  return api_call([&] {
    Work work;
    return add({node, graph, after, after_count}, make_copy_work(parameters, &work), &work);
  });
}

FLYDSL_EMU_EXPORT hipError_t hipGraphAddMemcpyNode1D(hipGraphNode_t *node, hipGraph_t graph,
                                                     const hipGraphNode_t *after,
                                                     size_t after_count, void *to, const void *from,
                                                     size_t bytes, hipMemcpyKind kind) {
  return api_call([&] {
    Work work;
    return add({node, graph, after, after_count}, make_copy_work(to, from, bytes, kind, &work),
               &work);
  });
}

FLYDSL_EMU_EXPORT hipError_t hipGraphAddHostNode(hipGraphNode_t *node, hipGraph_t graph,
                                                 const hipGraphNode_t *after, size_t after_count,
                                                 const hipHostNodeParams *parameters) {
  return api_call([&] {
    Work work;
    return add({node, graph, after, after_count}, make_host_work(parameters, &work), &work);
  });
}

FLYDSL_EMU_EXPORT hipError_t hipGraphAddEmptyNode(hipGraphNode_t *node, hipGraph_t graph,
                                                  const hipGraphNode_t *after, size_t after_count) {
  return api_call([&] { return add({node, graph, after, after_count}, {}); });
}

FLYDSL_EMU_EXPORT hipError_t hipGraphAddDependencies(hipGraph_t handle, const hipGraphNode_t *from,
                                                     const hipGraphNode_t *to, size_t count) {
  return api_call([&] {
    hipError_t error = hipSuccess;
    const std::shared_ptr<Graph> graph = graph_or_fail(handle, &error);
    if (!graph) return error;
    if (count != 0 && (from == nullptr || to == nullptr))
      return fail(hipErrorInvalidValue, "a list is null");
    std::lock_guard<std::mutex> lock(graph->mutex);
    for (size_t i = 0; i < count; ++i) {
      if (!has(*graph, from[i]) || !has(*graph, to[i]))
        return fail(hipErrorInvalidValue, "edge %zu: no nodes of this graph", i);
      auto &after = reinterpret_cast<GraphNode *>(to[i])->after;
      auto *const earlier = reinterpret_cast<GraphNode *>(from[i]);
      if (std::find(after.begin(), after.end(), earlier) == after.end()) after.push_back(earlier);
    }
    return hipSuccess;
  });
}
